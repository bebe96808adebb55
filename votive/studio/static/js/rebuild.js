/** A session as a page can keep it, and making it again on a server that knows nothing of it. */

import { take } from "./state.js";

const HASH = "#rebuild=";
const MOST = 5000; // nodes that a server writes again
const KEPT = ["do_sample", "temperature", "top_k", "top_p", "min_p", "repetition_penalty"];

/** What is needed to write a session again: all nodes, or of a very large tree its path. */
export function packed(session, edits) {
  const nodes = session.nodes.length <= MOST ? [...session.nodes].sort((a, b) => a.id - b.id) : session.path;
  const number = new Map(nodes.map((n, i) => [n.id, i]));
  const names = session.settings.do_sample ? KEPT : ["do_sample", "repetition_penalty"];
  return {
    nodes: nodes.map((n) => (n.parent === null || n.parent === undefined ? { text: n.text } : { parent: number.get(n.parent), token: n.token })),
    current: number.get(session.current), seed: session.seed,
    settings: Object.fromEntries(names.map((n) => [n, session.settings[n]]).filter(([, v]) => v !== null && v !== undefined)),
    edits: edits ?? [],
  };
}

/** Write it again, and take over what came of it; gives how many edits could not be made again. */
export async function writeAgain(model, { edits, ...tree }) {
  take(model, await model.ask("session.rebuild", tree));
  let [lost, found] = [0, null];
  const plain = edits.filter((e) => e.do !== "swap" && (typeof e.value !== "string"));
  if (plain.length) found = await model.ask("edits.set", { edits: plain });
  for (const e of edits.filter((x) => !plain.includes(x))) {
    try {
      found = await model.ask("edits.swap", { at: e.at, with: e.with });
    } catch {
      lost += 1; // a tensor, or a module from elsewhere: a page never had it
    }
  }
  if (found) {
    model.set("edits", { edits: found.edits, receipts: found.receipts });
    if (found.state) take(model, found.state);
  }
  return lost;
}

/** The same as the last part of an address, for a server at another one. */
export function toHash(pack) {
  const bytes = new TextEncoder().encode(JSON.stringify(pack));
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return `${HASH}${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

/** What `toHash` was given, or null. */
export function fromHash(hash) {
  if (!hash.startsWith(HASH)) return null;
  try {
    const text = atob(hash.slice(HASH.length).replaceAll("-", "+").replaceAll("_", "/"));
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  } catch {
    return null;
  }
}
