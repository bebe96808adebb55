/** Where each token looks: as links between tokens or as a matrix, for one head or their mean. */

import { ask, loader } from "../ask.js";
import { h, percent, put, readOut, s, short, throttled, visible } from "../dom.js";
import { Heatmap } from "../draw/heatmap.js";
import { legend, tell } from "../draw/legend.js";
import { thumbnails } from "../draw/thumbnails.js";
import { hover, locked, positionOf, select, shown, watch } from "../state.js";

const [LINE, LINES] = [20, 64]; // height of a row, and how many links are drawn

const SCORES = {
  induction: ["Induction score", "How much a head looks at what followed the same token before: such heads copy"],
  previous: ["Previous token", "How much a head looks at the token just before"],
  entropy: ["Entropy", "How evenly a head looks at all tokens, in nats; 0 is at one only"],
};

const MODES = { links: "Where one token looks, as lines", matrix: "Where each token looks, as a map", heads: "All heads as one number each", all: "All heads of all layers as small maps" };

export function render({ model, el }) {
  let [data, scores, mode, key] = [null, null, "links", ""];
  const layerBox = h("select", { id: "attention-layer", "aria-label": "Layer", onchange: () => select(model, { layer: Number(layerBox.value) }) });
  const heads = h("div", { class: "heads", role: "group", "aria-label": "Head" });
  const modes = ["links", "matrix", "heads", "all"].map((name) => h("button", { type: "button", class: "segment", id: `attention-${name}`, title: MODES[name], onclick: () => { mode = name; paint(); } },
    name[0].toUpperCase() + name.slice(1)));
  const links = h("div", { class: "links", role: "group", "aria-label": "Attention as links" });
  const box = h("div", { class: "heat square", id: "attention-map" });
  const overview = h("div", { class: "heat", id: "attention-overview" });
  const kind = h("select", { id: "attention-score", "aria-label": "How heads are compared", onchange: () => paint() },
    Object.entries(SCORES).map(([value, [text, title]]) => h("option", { value, title }, text)));
  const small_maps = h("div", { id: "attention-thumbs" });
  const colours = legend();
  const note = h("p", { class: "small dim", id: "attention-note" });
  const readout = h("div", { class: "readout mono", id: "attention-readout" }, " ");

  const map = new Heatmap(box, {
    name: "Attention, queries by keys. Arrow keys move, Enter locks the query.", left: 62, top: 52, square: true, rotate: true,
    hover: (row, col) => {
      readout.textContent = row === null ? " " : `${text(row)} → ${text(col)}: ${percent(map.value(row, col))}`;
      hover(model, row === null ? null : { position: row });
    },
    pick: (row) => select(model, { position: locked(model).position === row ? null : row }),
  });
  const small = new Heatmap(overview, {
    name: "Heads, layers by heads. Enter chooses.", left: 56, most: [64, 34],
    hover: (row, col) => { readout.textContent = row === null ? " " : `layer ${row}, head ${col}: ${kind.value} ${short(small.value(row, col))}`; },
    pick: (row, col) => select(model, { layer: row, head: col }),
  });

  const thumbs = thumbnails(small_maps, {
    pick: (row, col) => { select(model, { layer: row, head: col }); mode = "matrix"; paint(); },
    hover: (row, col) => { readout.textContent = row === null ? " " : `layer ${row}, head ${col}; a click opens it`; },
  });
  const text = (i) => visible(data.tokens[i]?.text ?? data.tokens[i] ?? "");
  const layer = () => Math.max(0, Math.min((model.get("info")?.layers ?? 1) - 1, shown(model).layer ?? 0));
  const head = () => shown(model).head;

  function controls() {
    const info = model.get("info");
    if (!info) return;
    if (layerBox.options.length !== info.layers) put(layerBox, Array.from({ length: info.layers }, (_, i) => h("option", { value: String(i) }, `Layer ${i}`)));
    layerBox.value = String(layer());
    if (heads.children.length !== info.heads + 1) {
      put(heads, h("button", { type: "button", class: "head", "data-head": "mean", title: "The average of all heads", onclick: () => select(model, { head: null }) }, "mean"),
        Array.from({ length: info.heads }, (_, i) => h("button", {
          type: "button", class: "head", "data-head": i, "aria-label": `Head ${i}`, onclick: () => select(model, { head: i }),
          onpointerenter: () => hover(model, { head: i }), onpointerleave: () => hover(model, null),
        }, String(i))));
    }
    const at = locked(model).head;
    for (const b of heads.children) b.setAttribute("aria-pressed", String(b.dataset.head === (at === null ? "mean" : String(at))));
  }

  function draw(found) {
    if (found.scores) scores = found.scores;
    data = found.weights ? found : data;
    paint();
    el.dataset.count = String(data?.tokens.length ?? 0);
  }

  function paint() {
    modes.forEach((b) => b.setAttribute("aria-pressed", String(b.id === `attention-${mode}`)));
    links.hidden = mode !== "links";
    box.hidden = mode !== "matrix";
    overview.hidden = kind.parentElement.hidden = mode !== "heads";
    small_maps.hidden = mode !== "all";
    heads.hidden = layerBox.hidden = mode === "heads" || mode === "all";
    note.textContent = mode === "all" ? "Each small map is a head: rows look at columns. Layers are numbered at the left; a click opens a head." : mode === "heads" ? `${SCORES[kind.value][1]}. A click chooses a head.`
      : mode === "matrix" ? "Rows look at columns. A click locks a row." : "What the token on the left looks at.";
    if (mode === "links") tell(colours, { name: "attention", ends: ["0", "100%"], title: "Wider and darker is more attention" });
    if (mode === "matrix") tell(colours, { name: "attention", ends: ["0", "31%", "100%"], title: "Small weights are lifted, so that they can be seen" });
    readout.textContent = " ";
    if (mode === "heads") return heatHeads();
    if (mode === "all") {
      tell(colours, { name: "attention", ends: ["0", "31%", "100%"], title: "Small weights are lifted, so that they can be seen" });
      return drawThumbs();
    }
    if (!data) return null;
    return mode === "links" ? drawLinks() : drawMatrix();
  }

  function drawMatrix() {
    const T = data.tokens.length;
    const names = data.tokens.map((t) => t.text ?? t);
    map.show({ rows: T, cols: T, values: data.weights.subarray(0, T * T), min: 0, max: 1, gamma: 0.6, signed: false, rowLabels: names, colLabels: names });
    const at = locked(model).position;
    map.lock(at, null);
  }

  async function heatHeads() {
    const session = model.get("session");
    if (!session) return;
    if (!scores || scores.node !== session.current) {
      try {
        scores = { ...(await ask(model, "attention.heads", { node: session.current }, { slot: "heads" })), node: session.current };
      } catch (error) {
        readout.textContent = error.message;
        return;
      }
    }
    const values = scores[kind.value];
    const [rows, cols] = values.shape;
    const real = [...values].filter(Number.isFinite);
    const top = real.reduce((a, b) => Math.max(a, b), 1e-6);
    tell(colours, { name: SCORES[kind.value][0].toLowerCase(), ends: ["0", short(top)], title: SCORES[kind.value][1] });
    small.show({ rows, cols, values, min: 0, max: top, signed: false,
      rowLabels: Array.from({ length: rows }, (_, i) => `layer ${i}`), colLabels: Array.from({ length: cols }, (_, i) => String(i)) });
    small.lock(locked(model).layer, locked(model).head);
  }

  let made = null; // the node that the small maps are of
  async function drawThumbs() {
    const session = model.get("session");
    if (!session) return;
    if (made !== session.current) {
      try {
        const found = await ask(model, "attention.thumbnails", { node: session.current }, { slot: "thumbnails" });
        made = session.current;
        thumbs.show(found.maps);
      } catch (error) {
        readout.textContent = error.message;
        return;
      }
    }
    thumbs.lock(locked(model).layer, locked(model).head);
  }

  /** Two columns of tokens, and lines from the query that is shown to what it looks at. */
  function drawLinks() {
    const T = data.tokens.length;
    const query = Math.min(T - 1, positionOf(model));
    const width = Math.max(220, links.clientWidth - 12);
    const root = s("svg", { width, height: T * LINE + 4, class: "link-svg" });
    const before = links.scrollTop;
    put(links, root);
    links.scrollTop = before;
    const y = query * LINE;
    const out = y < links.scrollTop || y > links.scrollTop + links.clientHeight - LINE;
    // What is shown from elsewhere comes into view, with what it looks at above it; under the
    // pointer nothing moves.
    if ((out || !model.get("hover")) && links.dataset.query !== String(query) && !links.matches(":hover")) {
      links.scrollTop = y - links.clientHeight + 2 * LINE;
    }
    links.dataset.query = String(query);
    const row = data.weights.subarray(query * T, (query + 1) * T);
    const most = row.subarray(0, query + 1).reduce((a, b) => Math.max(a, b), 1);
    drawLines(root, row, query, most, width);
    drawTokens(root, row, query, width);
    readout.textContent = `${text(query)} at ${query} looks most at ${text(row.subarray(0, query + 1).indexOf(most))}`;
  }

  function drawLines(root, row, query, most, width) {
    const [x1, x2] = [width * 0.4, width * 0.6];
    const keys = Array.from({ length: query + 1 }, (_, k) => k).filter((k) => row[k] >= 2);
    keys.sort((a, b) => row[b] - row[a]);
    for (const k of keys.slice(0, LINES)) {
      const [y1, y2] = [query * LINE + LINE / 2 + 2, k * LINE + LINE / 2 + 2];
      root.append(s("path", {
        d: `M${x1},${y1} C${(x1 + x2) / 2},${y1} ${(x1 + x2) / 2},${y2} ${x2},${y2}`, class: "link",
        style: { "stroke-opacity": (0.15 + 0.85 * (row[k] / most)).toFixed(2), "stroke-width": (0.6 + 4 * (row[k] / 255)).toFixed(2) },
      }));
    }
  }

  /** Only the tokens that can be seen, and a few around them. */
  function drawTokens(root, row, query, width) {
    const [x1, x2] = [Math.round(width * 0.4), Math.round(width * 0.6)];
    const chars = Math.floor(x1 / 7) - 1;
    const clip = (t) => (t.length > chars ? `${t.slice(0, chars - 1)}…` : t);
    const first = Math.max(0, Math.floor(links.scrollTop / LINE) - 8);
    const last = Math.min(data.tokens.length, Math.ceil((links.scrollTop + links.clientHeight) / LINE) + 8);
    for (let i = first; i < last; i += 1) {
      const y = i * LINE + LINE / 2 + 6;
      const w = i <= query ? row[i] / 255 : 0;
      root.append(
        s("rect", { x: 0, y: i * LINE + 2, width: x1, height: LINE, class: `hit${i === query ? " query" : ""}`, "data-at": i }),
        s("text", { x: x1 - 6, y, class: `end${i === query ? " query" : ""}`, text: clip(text(i)) }),
        s("rect", { x: x2, y: i * LINE + 4, width: width - x2, height: LINE - 4, class: "key", style: { "fill-opacity": w.toFixed(3) } }),
        s("text", { x: x2 + 6, y, class: i > query ? "future" : w > 0.45 ? "inverse" : "", text: clip(text(i)) }),
        i <= query && w >= 0.01 ? s("text", { x: width - 4, y, class: `end num ${w > 0.45 ? "inverse" : "dim"}`, text: percent(w) }) : "",
      );
    }
  }

  const scrolled = throttled(() => data && mode === "links" && drawLinks());
  links.addEventListener("scroll", scrolled);
  links.tabIndex = 0;
  const rowAt = (event) => event.target.dataset?.at;
  links.addEventListener("pointerover", (event) => rowAt(event) !== undefined && hover(model, { position: Number(rowAt(event)) }));
  links.addEventListener("pointerleave", () => hover(model, null));
  links.addEventListener("click", (event) => {
    if (rowAt(event) === undefined) return;
    const at = Number(rowAt(event));
    select(model, { position: locked(model).position === at ? null : at });
  });
  links.addEventListener("keydown", (event) => {
    const move = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!move || !data) return;
    event.preventDefault();
    select(model, { position: Math.max(0, Math.min(data.tokens.length - 1, positionOf(model, locked(model)) + move)) });
  });

  const load = loader({
    model, el, keys: ["attention-key"], draw, empty: "No text yet: begin with a prompt.",
    fetch: () => {
      const session = model.get("session");
      if (!session) return null;
      const which = head() === null ? { mean: true } : { heads: [head()] };
      return ask(model, "attention.layer", { node: session.current, layer: layer(), ...which }, { slot: "attention" });
    },
  });
  const look = throttled(() => {
    controls();
    if (mode === "all" && el.offsetParent !== null) drawThumbs();
    if (mode === "heads" && scores) small.lock(locked(model).layer, locked(model).head);
    const now = [model.get("session")?.current, layer(), head()].join("|");
    if (now !== key) load.reload();
    else if (data && mode !== "heads" && mode !== "all" && el.offsetParent !== null) {
      if (mode === "links") drawLinks();
      else map.lock(locked(model).position, null);
    }
    key = now;
  });
  for (const map of [links, box, overview]) readOut(map, readout);
  el.append(h("div", { class: "row" }, layerBox, h("span", { class: "segments", role: "group", "aria-label": "Show as" }, modes),
    h("label", {}, kind)), heads, note, links, box, overview, small_maps, colours, readout);
  const off = watch(model, ["session", "selection", "hover", "info"], look);
  const sized = new ResizeObserver(() => data && mode === "links" && drawLinks());
  sized.observe(links);
  look();
  paint();
  return () => {
    off();
    sized.disconnect();
    load.close();
    map.close();
    small.close();
    thumbs.close();
  };
}
