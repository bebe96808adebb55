/** Copying text, and telling whether that worked. */

import { notice } from "./state.js";

/** Copy a text; says so, or what to do where the browser forbids it. */
export async function copied(model, text) {
  try {
    await navigator.clipboard.writeText(text);
    notice(model, "done", "Copied.");
  } catch {
    notice(model, "error", "The browser does not allow this page to copy; the lines are under Console too.");
  }
}
