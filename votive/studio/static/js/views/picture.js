/**
 * The picture of the model with the text's own values: the whole, one layer of it, one head's arithmetic; a step of it
 * can be played. What is chosen is chosen everywhere.
 */

import { act, ask, loader } from "../ask.js";
import { h, put, throttled, visible } from "../dom.js";
import { flowPicture } from "../draw/flow.js";
import { hover, locked, positionOf, select, watch } from "../state.js";
import { headInside, layerInside } from "./picture_inside.js";

const PACE = 420; // milliseconds of a stage, where motion is wanted

export function render({ model, el }) {
  let [flow, says, inside, zoom, key, timer, playing] = [null, null, null, { kind: "whole" }, "", null, false];
  const path = h("nav", { class: "crumbs", "aria-label": "Where in the model" });
  const play = h("button", { type: "button", id: "picture-play", title: "Follow one step through the model", onclick: () => (playing ? stop() : begin()) }, "Play a step");
  const stage = h("input", { type: "range", id: "picture-stage", min: 0, max: 1, value: 0, "aria-label": "Stage of the step", title: "Stage of the step: drag, or use the arrow keys", oninput: () => { stop(); mark(Number(stage.value)); } });
  const words = h("p", { class: "small", id: "picture-words", role: "status" });
  const box = h("div", { class: "flow-box-scroll", id: "picture-box" });
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const position = () => positionOf(model);
  const tokens = () => (model.get("session")?.tokens ?? []).map((t) => t.text);

  /** Go to the whole, a layer or a head of it. */
  function go(next) {
    stop();
    zoom = next;
    inside = null;
    if (next.kind === "head") select(model, { layer: next.layer, head: next.head });
    load.reload();
    crumbs();
  }

  function crumbs() {
    const to = (text, next) => h("button", { type: "button", class: "quiet", onclick: () => go(next) }, text);
    const here = (text) => h("b", { "aria-current": "page" }, text);
    const { kind, layer, head } = zoom;
    put(path, kind === "whole" ? here("Model") : to("Model", { kind: "whole" }),
      kind === "whole" ? null : [h("span", { class: "dim" }, "›"), kind === "layer" ? here(`Layer ${layer}`) : to(`Layer ${layer}`, { kind: "layer", layer })],
      kind === "head" ? [h("span", { class: "dim" }, "›"), here(`Head ${head}`)] : null,
      h("span", { class: "grow" }), kind === "whole" ? [stage, play] : null);
  }

  /** What was chosen in the picture: everywhere else too, and nearer here. */
  function pick(kind, layer, head) {
    const info = model.get("info");
    const layers = info?.parts?.layers ?? [];
    if (kind === "stream") {
      const address = layer < 0 ? info?.parts?.embedding : layers[layer];
      if (address) select(model, { layer: Math.max(0, layer), address });
      tell(layer < 0 ? 0 : 2 * layer + 2);
      return;
    }
    select(model, { layer, address: layers[layer], ...(kind === "head" ? { head } : {}) });
    if (!info?.places) {
      words.textContent = "This model has no named places to look into here; its values are under Debugger.";
      return;
    }
    go(kind === "head" ? { kind: "head", layer, head } : { kind: "layer", layer });
  }

  const jump = (tab, part) => {
    select(model, part);
    model.actions?.tab?.(tab);
  };

  function draw(found) {
    if (found.inside) {
      inside = found.inside;
      stage.hidden = play.hidden = true;
      const made = zoom.kind === "head" ? headInside : layerInside;
      put(box, made({ data: inside, tokens: tokens(), go, jump, choose: (i) => select(model, { position: i }) }));
      words.textContent = zoom.kind === "head" ? `Layer ${zoom.layer}, head ${zoom.head}, at ${visible(tokens()[inside.position])}: all numbers are those of this text.`
        : `Layer ${zoom.layer} at ${visible(tokens()[inside.position])}: what comes in, what is added, what goes on.`;
      el.dataset.zoom = zoom.kind;
      return;
    }
    if (found.flow) flow = found.flow;
    says = found.says;
    stage.hidden = play.hidden = false;
    paint();
  }

  function paint() {
    if (!flow || zoom.kind !== "whole") return;
    const names = tokens();
    const at = Math.min(position(), flow.attention.shape[1] - 1, names.length - 1);
    if (at < 0) return;
    const before = [box.scrollLeft, document.activeElement?.dataset?.name];
    const { layer, head } = locked(model);
    const { root, stages } = flowPicture({
      flow, says: says?.position === at ? says : null, tokens: names, position: at, width: Math.max(640, box.clientWidth - 4), layer, head, pick,
      hover: (part) => hover(model, part), choose: (i) => select(model, { position: i === names.length - 1 ? null : i }),
      goOn: (t) => at === names.length - 1 && act(model, "session.choose", { token: t.id }),
    });
    put(box, root);
    box.scrollLeft = before[0];
    if (before[1]?.match?.(/^(Head|The attention|The MLP|The stream|Token)/)) [...root.querySelectorAll("[tabindex]")].find((n) => n.dataset.name === before[1])?.focus({ preventScroll: true });
    stage.max = String(stages);
    el.dataset.zoom = "whole";
    el.dataset.position = String(at);
    mark(Number(stage.value));
  }

  /** Light up what has been reached at a stage, and say what it does. */
  function mark(at) {
    stage.value = String(at);
    const on = at > 0;
    box.classList.toggle("staged", on);
    for (const one of box.querySelectorAll(".flow-stage")) one.classList.toggle("reached", on && Number(one.dataset.stage) <= at);
    for (const one of box.querySelectorAll(".flow-stage")) one.classList.toggle("now", on && Number(one.dataset.stage) === at);
    tell(at);
    if (on && at > 0) box.querySelector(`.flow-layer[data-layer="${Math.min(Math.ceil(at / 2) - 1, flow.attention.shape[0] - 1)}"]`)?.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }

  function tell(at) {
    if (!flow) return;
    const L = flow.attention.shape[0];
    const T = flow.attention.shape[1];
    const now = Math.min(position(), T - 1);
    const size = (array, i) => Number(array[i * T + now].toPrecision(3));
    const token = visible(tokens()[now] ?? "");
    const layer = Math.ceil(at / 2) - 1;
    if (at <= 0) words.textContent = `${token} comes in as a vector; each layer reads it and adds to it, and what it has become in the end says the next token. Lines are as wide as what flows is long. Choose a block to look inside.`;
    else if (at > 2 * L) words.textContent = `The last norm and the head turn the stream into ${says?.top?.length ? `probabilities: ${says.top.slice(0, 3).map((t) => visible(t.text)).join(", ")} are the likeliest` : "probabilities"}.`;
    else if (at % 2) words.textContent = `Layer ${layer}: the norm, then attention reads other positions and adds ${size(flow.attention, layer)} to a stream of ${size(flow.residual, layer)}.`;
    else words.textContent = `Layer ${layer}: the norm, then the MLP adds ${size(flow.mlp, layer)}; the stream is ${size(flow.residual, layer + 1)} now${says?.layers[layer + 1] ? `, and would say ${visible(says.layers[layer + 1].text)}` : ""}.`;
  }

  function begin() {
    playing = true;
    play.textContent = "Pause";
    const from = Number(stage.value) >= Number(stage.max) ? 0 : Number(stage.value);
    const next = (at) => {
      if (!playing) return;
      if (at > Number(stage.max)) { stop(); return; }
      mark(at);
      timer = setTimeout(() => next(at + 1), still.matches ? 3 * PACE : PACE);
    };
    next(from + 1);
  }

  function stop() {
    playing = false;
    clearTimeout(timer);
    play.textContent = "Play a step";
  }

  function fetch() {
    const session = model.get("session");
    if (!session) return null;
    const [node, at] = [session.current, position()];
    if (zoom.kind === "layer") return ask(model, "picture.layer", { node, layer: zoom.layer, position: at }, { slot: "picture" }).then((found) => ({ inside: found }));
    if (zoom.kind === "head") return ask(model, "picture.head", { node, layer: zoom.layer, head: zoom.head, position: at }, { slot: "picture" }).then((found) => ({ inside: found }));
    const known = flow?.node === node;
    return Promise.all([known ? flow : ask(model, "picture.flow", { node }, { slot: "picture" }), ask(model, "picture.says", { node, position: at }, { slot: "picture-says" })])
      .then(([f, w]) => ({ flow: f, says: w }));
  }

  const load = loader({ model, el, keys: ["picture-key"], fetch, draw, appears: () => paint(), empty: "No text yet: write a prompt at the left and press Begin. The model is drawn here as it reads." });
  const look = throttled(() => {
    const session = model.get("session");
    const pointed = model.get("hover")?.position;
    const now = [session?.current, position(), Boolean(session)].join("|");
    const before = key;
    key = now;
    // Under the pointer the picture moves along with what is at hand; what is said there comes when it is locked.
    if (pointed !== undefined && flow && zoom.kind === "whole") paint();
    else if (now !== before) load.reload();
    else if (el.offsetParent !== null) paint();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && zoom.kind !== "whole") {
      event.stopPropagation();
      go(zoom.kind === "head" ? { kind: "layer", layer: zoom.layer } : { kind: "whole" });
      return;
    }
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const from = event.target.closest?.(".flow-layer");
    if (!by || !from) return;
    event.preventDefault();
    box.querySelector(`.flow-layer[data-layer="${Number(from.dataset.layer) + by}"] [tabindex]`)?.focus();
  });
  el.append(path, words, box);
  crumbs();
  const off = watch(model, ["session", "selection", "hover"], look);
  const again = watch(model, ["info"], () => { flow = null; go({ kind: "whole" }); });
  let wide = 0;
  const sized = new ResizeObserver(throttled(() => {
    if (box.clientWidth && box.clientWidth !== wide) paint();
    wide = box.clientWidth;
  }));
  sized.observe(box);
  look();
  return () => {
    [off, again].forEach((f) => f());
    stop();
    sized.disconnect();
    load.close();
  };
}
