/**
 * What all views share: a model with get, set and on, as notebook widgets have it, and one selection.
 * Knows no server and draws nothing.
 *
 * Keys: "link" {status, detail}, "info" (ModelInfo or null), "session" (State with `path` and
 * `tokens`, or null), "selection" {node, position, layer, head, address}, "hover" (a part of a
 * selection, or null), "debug", "edits", "busy", "progress", "generating", "trouble" (why there is no model), "notices",
 * "preview" (settings that a slider is at but has not set yet), "doing" (what the server is at).
 */

export class Store {
  constructor(values = {}) {
    this.values = { ...values };
    this.listeners = new Map();
  }

  get(key) {
    return this.values[key];
  }

  set(key, value) {
    if (this.values[key] === value) return;
    this.values[key] = value;
    this.trigger(`change:${key}`, value);
  }

  on(name, f) {
    if (!this.listeners.has(name)) this.listeners.set(name, new Set());
    this.listeners.get(name).add(f);
  }

  off(name, f) {
    this.listeners.get(name)?.delete(f);
  }

  trigger(name, ...args) {
    for (const f of [...(this.listeners.get(name) ?? [])]) f(...args);
  }

  save_changes() {}
}

/** Listen to several keys; gives a function that ends it. */
export function watch(model, keys, f) {
  const listener = () => f();
  keys.forEach((key) => model.on(`change:${key}`, listener));
  return () => keys.forEach((key) => model.off(`change:${key}`, listener));
}

const NOTHING = { node: null, position: null, layer: null, head: null, address: null };

/** What is locked. */
export function locked(model) {
  return model.get("selection") ?? NOTHING;
}

/** What is shown: that under the pointer, and else what is locked. */
export function shown(model) {
  return { ...NOTHING, ...locked(model), ...(model.get("hover") ?? {}) };
}

/** Lock a part of the selection; the rest stays. */
export function select(model, part) {
  const old = locked(model);
  if (Object.entries(part).every(([k, v]) => old[k] === v)) return;
  model.set("selection", { ...old, ...part });
  model.save_changes();
}

/** Preview a part of a selection, or with null nothing. */
export function hover(model, part) {
  const old = model.get("hover") ?? null;
  if (part === null && old === null) return;
  if (part && old && JSON.stringify(part) === JSON.stringify(old)) return;
  model.set("hover", part);
}

/** The position that is meant when none is locked: the last one. */
export function positionOf(model, selection = shown(model)) {
  const count = model.get("session")?.tokens?.length ?? 0;
  if (selection.position === null || selection.position === undefined) return count - 1;
  return Math.min(selection.position, count - 1);
}

/** Take over a state of the session, and work out the path and its tokens. */
export function take(model, state) {
  const nodes = new Map(state.nodes.map((n) => [n.id, n]));
  const path = [];
  for (let n = nodes.get(state.current); n; n = nodes.get(n.parent)) path.unshift(n);
  const root = path[0];
  const tokens = (state.prompt ?? []).map((t, i, all) => ({
    position: i, id: t.id, text: t.text, node: root?.id ?? null, prompt: true,
    p: t.p ?? null, entropy: i === all.length - 1 ? root?.entropy ?? null : t.entropy ?? null,
  }));
  for (const n of path.slice(1)) {
    tokens.push({
      position: tokens.length, id: n.token, text: n.text, node: n.id, prompt: false, p: n.p,
      entropy: n.entropy, how: n.how,
    });
  }
  const before = model.get("session");
  model.set("session", { ...state, byId: nodes, path, tokens });
  const old = locked(model);
  const part = { node: state.current };
  // A position that is locked stays; without one the last is followed.
  const other = before && before.path[0]?.id !== root?.id && before.prompt.length !== state.prompt.length;
  if (old.position !== null && (old.position >= tokens.length || other)) part.position = null;
  select(model, part);
}

/** Tell people something: kind is "error", "done" or "note". */
export function notice(model, kind, text, more = {}) {
  const all = model.get("notices") ?? [];
  const id = (all.at(-1)?.id ?? 0) + 1;
  model.set("notices", [...all.slice(-3), { id, kind, text, ...more }]);
}
