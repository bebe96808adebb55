/**
 * What a model that sees makes of a picture: its classes, where it looks, where a class is seen, and
 * what its convolutions make of it. For models whose info says "vision".
 */

import { ask, idle } from "../ask.js";
import { h, percent, put, short, visible } from "../dom.js";
import { palette, place, sequential } from "../draw/colour.js";
import { notice, watch } from "../state.js";

// Pixels of the longer side that are sent, and the share of colour where a map is highest.
const [SENT, STRENGTH] = [512, 0.75];
const MODES = [
  ["picture", "Picture", "What the model is given"], ["rollout", "Rollout", "Attention followed through all layers to the class token"],
  ["map", "Attention", "Where one token looks in one layer"], ["cross", "Reading", "Where the decoder looked for a token of the text"],
  ["cam", "Grad-CAM", "Where a class is seen"], ["maps", "Feature maps", "What a convolution makes of the picture"],
];

/** A picture file in base64, not larger than is needed. */
async function packed(file) {
  const image = await createImageBitmap(file);
  const scale = Math.min(1, SENT / Math.max(image.width, image.height));
  const canvas = new OffscreenCanvas(Math.max(1, Math.round(image.width * scale)), Math.max(1, Math.round(image.height * scale)));
  const c = canvas.getContext("2d");
  c.fillStyle = "#ffffff"; // what shines through is white, as in the models' processors
  c.fillRect(0, 0, canvas.width, canvas.height);
  c.drawImage(image, 0, 0, canvas.width, canvas.height);
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 })).arrayBuffer());
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

export function render({ model, el }) {
  let [seen, mode, target, query, ticket, shown] = [null, "picture", null, 0, 0, null];
  const canvas = h("canvas", { class: "vision-stage", role: "img", "aria-label": "The picture", width: 224, height: 224 });
  const legend = h("p", { class: "dim small", role: "status" });
  const file = h("input", { type: "file", accept: "image/*", id: "vision-file", "aria-label": "Show another picture", onchange: () => file.files[0] && take(file.files[0]) });
  const classes = h("div", { class: "vision-classes", role: "listbox", "aria-label": "Classes" });
  const text = h("div", { class: "vision-text", role: "listbox", "aria-label": "Text" });
  const buttons = Object.fromEntries(MODES.map(([name, label, title]) => [name, h("button", { type: "button", class: "segment", "data-mode": name, title, onclick: () => choose(name) }, label)]));
  const picker = (label) => h("select", { "aria-label": label, onchange: () => fetch() });
  const [layer, head, conv, order] = [picker("Layer"), picker("Head"), picker("Convolution"), picker("Channels")];
  put(order, h("option", { value: "first" }, "first channels"), h("option", { value: "strongest" }, "strongest channels"));
  const tools = h("div", { class: "row" }, layer, head, conv, order);

  canvas.addEventListener("click", (event) => {
    if (mode !== "map" || !seen?.grid) return;
    const [rows, cols] = seen.grid;
    const box = canvas.getBoundingClientRect();
    const at = (v, size, count) => Math.max(0, Math.min(count - 1, Math.floor((v / size) * count)));
    query = seen.before + at(event.clientY - box.top, box.height, rows) * cols + at(event.clientX - box.left, box.width, cols);
    fetch();
  });
  el.addEventListener("dragover", (event) => event.preventDefault());
  el.addEventListener("drop", (event) => {
    event.preventDefault();
    const dropped = [...event.dataTransfer.files].find((f) => f.type.startsWith("image/"));
    if (dropped) take(dropped);
  });

  async function take(from) {
    try {
      await look(await packed(from));
    } catch (error) {
      notice(model, "error", `This picture could not be read: ${error.message}`);
    }
  }

  async function look(image) {
    const mine = (ticket += 1);
    el.setAttribute("aria-busy", "true");
    try {
      const found = await ask(model, "vision.look", image ? { image } : {}, { slot: "vision" });
      if (mine !== ticket) return;
      [seen, target, query] = [found, null, 0];
      fill();
      choose(available(mode) ? mode : "picture");
    } catch (error) {
      if (!idle(error)) notice(model, "error", error.message);
    } finally {
      if (mine === ticket) el.removeAttribute("aria-busy");
    }
  }

  const available = (name) => Boolean(seen) && ({ picture: true, rollout: seen.layers.length, map: seen.layers.length, cross: seen.cross, cam: seen.classes.length, maps: seen.maps.length })[name];

  function fill() {
    for (const [name, button] of Object.entries(buttons)) button.hidden = !available(name);
    put(conv, seen.maps.map((name) => h("option", { value: name }, name)));
    put(classes, seen.classes.map((c) => h("button", { type: "button", class: "vision-class", role: "option", "aria-selected": "false", "data-id": c.id,
      onclick: () => { target = c.id; choose("cam"); } },
    h("span", { class: "grow left" }, visible(c.label)), h("span", { class: "num" }, percent(c.p)),
    h("span", { class: "vision-bar", "aria-hidden": "true", style: { width: `${100 * c.p}%` } }))));
    put(text, seen.tokens.map((t, i) => h("button", { type: "button", class: "vision-token mono", role: "option", "aria-selected": "false",
      onclick: () => { query = i; choose("cross"); } }, visible(t))));
    classes.hidden = !seen.classes.length;
    text.hidden = !seen.tokens.length;
  }

  function choose(name) {
    if (!seen) return;
    if (mode !== name && name !== "cross") query = 0;
    mode = name;
    for (const [key, button] of Object.entries(buttons)) button.setAttribute("aria-pressed", String(key === name));
    const [count, heads] = name === "cross" ? [seen.cross, seen.cross_heads] : [seen.layers.length, seen.heads];
    const mapped = name === "map" || name === "cross";
    if (mapped && layer.options.length !== count) {
      put(layer, Array.from({ length: count }, (_, i) => h("option", { value: i }, `layer ${i}`)));
      layer.value = String(count - 1);
    }
    if (mapped && head.options.length !== heads + 1) put(head, h("option", { value: "" }, "mean of heads"), Array.from({ length: heads }, (_, i) => h("option", { value: i }, `head ${i}`)));
    [layer.hidden, head.hidden] = [!mapped, !mapped];
    [conv.hidden, order.hidden] = [name !== "maps", name !== "maps"];
    fetch();
  }

  async function fetch() {
    const mine = (ticket += 1);
    const asked = {
      picture: () => null, rollout: () => ["vision.attention", { what: "rollout" }],
      map: () => ["vision.attention", spot("map")], cross: () => ["vision.attention", spot("cross")],
      cam: () => ["vision.cam", target === null ? {} : { target }], maps: () => ["vision.maps", { at: conv.value, order: order.value }],
    }[mode]();
    el.setAttribute("aria-busy", "true");
    try {
      const found = asked ? await ask(model, ...asked, { slot: "vision-map" }) : {};
      if (mine !== ticket) return;
      draw(found);
    } catch (error) {
      if (mine === ticket && !idle(error)) legend.textContent = error.message;
    } finally {
      if (mine === ticket) el.removeAttribute("aria-busy");
    }
  }

  const spot = (what) => ({ what, layer: Number(layer.value), query, ...(head.value === "" ? {} : { head: Number(head.value) }) });

  function draw(found) {
    shown = found;
    const grid = found.grid ?? seen.picture;
    const [rows, cols] = grid.shape;
    const image = new ImageData(cols, rows);
    const colours = sequential(palette(el));
    const [mapRows, mapCols] = found.map?.shape ?? [0, 0];
    for (let y = 0; y < rows; y += 1) {
      for (let x = 0; x < cols; x += 1) {
        const i = y * cols + x;
        let [share, at] = [0, 0];
        if (found.map) {
          const v = found.map[Math.floor((y * mapRows) / rows) * mapCols + Math.floor((x * mapCols) / cols)];
          at = place(v, found.low, found.high);
          share = (STRENGTH * at) / 255;
        }
        for (let c = 0; c < 3; c += 1) image.data[4 * i + c] = (1 - share) * grid[3 * i + c] + share * colours[3 * at + c];
        image.data[4 * i + 3] = 255;
      }
    }
    [canvas.width, canvas.height] = [cols, rows];
    const c = canvas.getContext("2d");
    c.putImageData(image, 0, 0);
    if (mode === "map" && query >= seen.before) {
      const [high, wide] = seen.grid;
      const [r, k] = [Math.floor((query - seen.before) / wide), (query - seen.before) % wide];
      c.strokeStyle = "#ffffff";
      c.lineWidth = Math.max(1, rows / 110);
      c.strokeRect((k * cols) / wide, (r * rows) / high, cols / wide, rows / high);
    }
    canvas.style.setProperty("image-rendering", mode === "maps" ? "pixelated" : "auto");
    told(found);
  }

  function told(found) {
    const span = found.map ? `, from ${short(found.low)} to ${short(found.high)}` : "";
    const token = seen.before && query < seen.before ? "the class token" : `patch ${query - seen.before}`;
    legend.textContent = {
      picture: "As the model sees it.", rollout: `How much each patch reached the class token through all layers${span}.`,
      map: `Where ${token} looks${span}. Click on the picture to choose a patch.`,
      cross: `Where the decoder looked to write “${visible(seen.tokens[query] ?? "")}”${span}.`,
      cam: `Where “${visible(found.label ?? "")}” is seen, at ${found.address ?? ""}.`, maps: `${found.note ?? ""}; ${found.legend ?? ""}.`,
    }[mode];
    canvas.setAttribute("aria-label", `${MODES.find(([name]) => name === mode)[1]}. ${legend.textContent}`);
    classes.querySelectorAll("button").forEach((b) => b.setAttribute("aria-selected", String(mode === "cam" && Number(b.dataset.id) === found.target)));
    [...text.children].forEach((b, i) => b.setAttribute("aria-selected", String(mode === "cross" && i === query)));
  }

  el.classList.add("vision");
  el.append(
    h("div", { class: "vision-side" }, h("label", { class: "row" }, h("b", {}, "Picture"), file), h("p", { class: "dim small" }, "Choose or drop a picture; it stays on this machine."), classes, text),
    h("div", { class: "vision-main" }, h("div", { class: "segments", role: "group", "aria-label": "What is shown" }, Object.values(buttons)), tools, canvas, legend),
  );
  [layer, head, conv, order].forEach((x) => { x.hidden = true; });
  const begin = () => {
    seen = null;
    if (model.get("info")?.vision) look(null);
  };
  const redraw = () => shown && seen && draw(shown);
  window.addEventListener("votive-theme", redraw);
  const off = watch(model, ["info"], begin);
  begin();
  return () => {
    off();
    window.removeEventListener("votive-theme", redraw);
  };
}
