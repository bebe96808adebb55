/** Making elements. Text only ever becomes text: nothing here parses markup. */

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "text") node.textContent = value;
    else if (name === "style") Object.entries(value).forEach(([k, v]) => node.style.setProperty(k, v));
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  // What is read to people is shown to those who point at it, too.
  if (props?.["aria-label"] && !props.title && /^(button|input|select|textarea)$/i.test(node.tagName)) node.setAttribute("title", props["aria-label"]);
  for (const child of children.flat(3)) {
    if (child !== undefined && child !== null && child !== false) node.append(child);
  }
  return node;
}

/** An element: h("button", {class: "quiet", onclick: f}, "Step"). */
export function h(tag, props, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function s(tag, props, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

/** Take what is in an element out, and put these in. */
export function put(el, ...children) {
  el.replaceChildren(...children.flat(3).filter((c) => c !== undefined && c !== null && c !== false));
}

/** A token as a label: spaces and line ends are made visible. */
export function visible(text) {
  if (text === undefined || text === null) return "";
  if (text === "") return "∅";
  return text.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replace(/^ | $/g, "·")
    .replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

/** A number in few digits. */
export function short(x) {
  if (x === null || x === undefined) return "–";
  if (typeof x !== "number") return String(x);
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  if (Number.isInteger(x) && size < 1e6) return String(x).replace("-", "−");
  const text = size >= 1e5 || size < 1e-3 ? x.toExponential(2) : String(Number(x.toPrecision(4)));
  return text.replaceAll("-", "−");
}

/** A probability as a percentage. */
export function percent(p) {
  if (p === null || p === undefined || Number.isNaN(p)) return "–";
  if (p >= 0.9995) return "100%";
  if (p >= 0.0995) return `${(100 * p).toFixed(1)}%`;
  return p >= 0.0001 ? `${(100 * p).toFixed(2)}%` : p > 0 ? "<0.01%" : "0%";
}

/** Bytes with a unit. */
export function bytes(n) {
  if (n === null || n === undefined) return "–";
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) [n, at] = [n / 1000, at + 1];
  return `${at ? Number(n.toPrecision(3)) : n} ${units[at]}`;
}

/** Seconds with a unit. */
export function seconds(t) {
  if (t === null || t === undefined) return "–";
  if (t >= 1) return `${t.toFixed(2)} s`;
  return t >= 1e-3 ? `${(t * 1e3).toFixed(2)} ms` : `${(t * 1e6).toFixed(0)} µs`;
}

/** Bring a child of a scrolling box into view, without moving the page around it. */
export function reveal(box, child) {
  if (!child) return;
  const [outer, inner] = [box.getBoundingClientRect(), child.getBoundingClientRect()];
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
}

/** Let what is told in `words` be read out while keys move in `el`; what the pointer does is not. */
export function readOut(el, words) {
  words.setAttribute("aria-live", "off");
  el.addEventListener("keydown", () => words.setAttribute("aria-live", "polite"));
  el.addEventListener("pointermove", () => words.setAttribute("aria-live", "off"));
}

/** Call `f` once per frame at most, with the last arguments. */
export function throttled(f) {
  let last = null;
  return (...args) => {
    if (last === null) {
      requestAnimationFrame(() => {
        const now = last;
        last = null;
        f(...now);
      });
    }
    last = args;
  };
}

/** How long ago a time was. */
export function ago(when) {
  const left = (Date.parse(when) - Date.now()) / 1000;
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];
  const [unit, size] = units.find(([, n]) => Math.abs(left) >= n) ?? ["second", 1];
  if (unit === "second") return "just now";
  return new Intl.RelativeTimeFormat("en", { numeric: "always" }).format(Math.round(left / size), unit);
}
