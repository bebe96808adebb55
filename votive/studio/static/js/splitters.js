/**
 * Lines between the columns, and under the list of modules, that can be drawn by the pointer or moved by arrow keys.
 * Where they were left is remembered. Knows no views.
 */

import { h } from "./dom.js";

const KEY = "votive-sizes";
const STEP = 16;

const kept = () => {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? "{}");
  } catch {
    return {};
  }
};

function keep(name, value) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ ...kept(), [name]: value }));
  } catch { /* it holds for this page only */ }
}

/**
 * A line that sets the property `--name` to a size in pixels. `now()` measures it, `bounds()` gives the smallest and
 * the largest, `sign` is -1 where the size grows against the direction of the pointer.
 */
function splitter({ name, label, level = false, inline = false, sign = 1, now, bounds, moved = () => {} }) {
  const el = h("div", { class: `splitter ${inline ? "inline" : level ? "level" : "upright"}`, id: `split-${name}`, role: "separator", tabindex: 0, "aria-orientation": level ? "horizontal" : "vertical", "aria-label": label, title: `${label}: draw it, or use the arrow keys; a double click sets it back` });
  const set = (size, store = true) => {
    const [low, high] = bounds();
    const to = Math.round(Math.max(low, Math.min(high, size)));
    document.body.style.setProperty(`--${name}`, `${to}px`);
    el.setAttribute("aria-valuemin", String(Math.round(low)));
    el.setAttribute("aria-valuemax", String(Math.round(high)));
    el.setAttribute("aria-valuenow", String(to));
    if (store) keep(name, to);
    moved();
  };
  const reset = () => {
    document.body.style.removeProperty(`--${name}`);
    keep(name, undefined);
    told();
    moved();
  };
  const told = () => el.setAttribute("aria-valuenow", String(Math.round(now())));
  let drag = null;
  el.addEventListener("pointerdown", (event) => {
    drag = { at: level ? event.clientY : event.clientX, size: now() };
    el.setPointerCapture(event.pointerId);
    el.classList.add("dragged");
    event.preventDefault();
    el.focus();
  });
  el.addEventListener("pointermove", (event) => drag && set(drag.size + sign * ((level ? event.clientY : event.clientX) - drag.at), false));
  const end = () => {
    if (!drag) return;
    drag = null;
    el.classList.remove("dragged");
    keep(name, Math.round(now()));
  };
  el.addEventListener("pointerup", end);
  el.addEventListener("pointercancel", end);
  el.addEventListener("dblclick", reset);
  el.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (by && (level ? /Up|Down/ : /Left|Right/).test(event.key)) set(now() + sign * by * STEP);
    else if (event.key === "Home" || event.key === "Enter") reset();
    else return;
    event.preventDefault();
  });
  const size = kept()[name];
  if (Number.isFinite(size)) document.body.style.setProperty(`--${name}`, `${size}px`);
  queueMicrotask(told);
  return { el, told };
}

/** Put the lines into the page. */
export function splitters() {
  const $ = (id) => document.getElementById(id);
  const main = document.querySelector("main");
  const wide = () => main.clientWidth;
  const place = () => {
    const [a, b] = [$("left").offsetWidth, $("right").offsetWidth];
    const two = matchMedia("(max-width: 1119px)").matches;
    left.el.style.setProperty("left", `${a}px`);
    right.el.hidden = two;
    right.el.style.setProperty("right", `${b - 3}px`);
    upper.el.hidden = !two;
    upper.el.style.setProperty("top", `${$("centre").offsetHeight}px`);
    upper.el.style.setProperty("left", `${a}px`);
    upper.el.style.setProperty("right", "0");
  };
  const left = splitter({ name: "left", label: "Width of the text", now: () => $("left").offsetWidth, bounds: () => [230, Math.max(260, wide() - 560)], moved: () => place() });
  const right = splitter({ name: "right", label: "Width of the views", sign: -1, now: () => $("right").offsetWidth, bounds: () => [250, Math.max(280, wide() - 620)], moved: () => place() });
  const upper = splitter({ name: "upper", label: "Height of the model", level: true, now: () => $("centre").offsetHeight, bounds: () => [120, Math.max(160, main.clientHeight - 140)], moved: () => place() });
  const list = document.querySelector(".stack");
  const stack = splitter({ name: "stack", label: "Height of the list of modules", level: true, inline: true, now: () => list.offsetHeight, bounds: () => [72, Math.max(120, innerHeight - 240)] });
  // Each comes first in the column that it begins, as it is met when one reads on.
  $("centre").prepend(left.el);
  $("right").prepend(upper.el, right.el);
  $("panel-stack").append(stack.el);
  new ResizeObserver(() => {
    place();
    [left, right, upper, stack].forEach((one) => one.told());
  }).observe(main);
  place();
}
