/**
 * The bar that tells that the server is away, and what can be done: wait, give the address of a
 * server that was started anew, or take the text along.
 */

import { packed, toHash } from "./rebuild.js";
import { h, put } from "./dom.js";
import { notice, watch } from "./state.js";

const LOOPBACK = new Set(["127.0.0.1", "localhost", "[::1]"]);
const PATIENCE = 3; // tries after which it may be that it will not come back here

/** Token and origin in what was pasted: an address that the server printed, or the token alone. */
export function read(text, here = location) {
  const given = text.trim();
  if (/^[\w-]{20,}$/.test(given)) return { token: given, origin: here.origin };
  let url;
  try {
    url = new URL(given);
  } catch {
    return { error: "Paste the whole address, such as http://127.0.0.1:8000/?token=…" };
  }
  const token = url.searchParams.get("token");
  if (!token) return { error: "This address has no token; paste it as the server printed it." };
  if (url.protocol !== "http:" || !(LOOPBACK.has(url.hostname) || url.hostname === here.hostname)) {
    return { error: "That is not the address of a studio on this machine." };
  }
  return { token, origin: url.origin };
}

export function offline(model, link, el) {
  const words = h("span", { id: "offline-text" });
  const again = h("button", { type: "button", id: "reconnect", title: "Try to reach the server now", onclick: () => link.connect() }, "Connect now");
  const address = h("input", { type: "text", id: "offline-address", placeholder: "http://127.0.0.1:…/?token=…", "aria-label": "Address that the server printed", autocomplete: "off", spellcheck: "false",
    onkeydown: (event) => event.key === "Enter" && go() });
  const join = h("button", { type: "button", id: "offline-go", title: "Continue there with the text you see", onclick: () => go() }, "Go on there");
  const copy = h("button", { type: "button", id: "offline-copy", title: "Copy the text that was written", onclick: () => take() }, "Copy the text");
  const fault = h("span", { id: "offline-fault", role: "status" });
  put(el, words, again, address, join, copy, fault);

  async function take() {
    try {
      await navigator.clipboard.writeText(model.get("session")?.tokens.map((t) => t.text).join("") ?? "");
      notice(model, "done", "Copied.");
    } catch {
      notice(model, "error", "The browser does not allow this page to copy.");
    }
  }

  async function go() {
    const { token, origin, error } = read(address.value);
    fault.textContent = error ?? "";
    if (error) return;
    const session = model.get("session");
    const pack = session ? packed(session, model.get("edits")?.edits) : null;
    if (origin !== location.origin) {
      location.assign(`${origin}/?token=${encodeURIComponent(token)}${pack ? toHash(pack) : ""}`);
      return;
    }
    try {
      // The server answers with the cookie that the line needs.
      const answer = await fetch(`/?token=${encodeURIComponent(token)}`, { credentials: "same-origin", cache: "no-store" });
      if (answer.ok) link.connect();
      else fault.textContent = "The server does not take this token; copy the address from where it was started last.";
    } catch {
      fault.textContent = "No server answers at this address yet.";
    }
  }

  // Who comes back to the page does not want to wait for the next try.
  document.addEventListener("visibilitychange", () => !document.hidden && link.status === "lost" && link.connect());

  watch(model, ["link"], () => {
    const { status, detail } = model.get("link");
    document.body.dataset.link = status;
    el.hidden = status === "open" || (status === "connecting" && !detail);
    if (el.hidden) {
      address.value = fault.textContent = "";
      return;
    }
    const refused = status === "refused";
    const long = (detail?.tries ?? 0) >= PATIENCE;
    words.textContent = status === "paused" ? detail.reason
      : refused ? "The server was restarted with another token. Paste the address that it printed: your text goes along."
        : long ? "The server does not answer; what you see stays as it was. Start it again with “votive studio”. If it has another address then, paste it here."
          : "The server does not answer. Trying again; what you see stays as it was.";
    address.hidden = join.hidden = !(refused || long);
    copy.hidden = !(refused || long) || !model.get("session");
  });
}
