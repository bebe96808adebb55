/**
 * What a model that hears makes of a sound: its mels, the text while it is written, and where in the
 * sound each token was heard. For models whose info says "speech".
 */

import { ask, idle } from "../ask.js";
import { bytes, h, percent, put, readOut, short, visible } from "../dom.js";
import { AlignmentMap } from "../draw/alignment.js";
import { legend, tell } from "../draw/legend.js";
import { Mel } from "../draw/mel.js";
import { Scale, clock } from "../draw/time.js";
import { Player, send } from "../sound.js";
import { watch } from "../state.js";
import { speechText } from "./speech_text.js";
import { speechWord } from "./speech_word.js";

export function render({ model, el }) {
  // What the room knows, the number of the window in view, the span that is chosen, the attention
  // that is drawn, who asked last, and what ends a transcription.
  let [state, page, chosen, aligned, ticket, running] = [null, 0, null, null, 0, null];
  const scale = new Scale();
  const facts = () => model.get("info")?.speech;

  // --- what is there -------------------------------------------------------------------------------

  const file = h("input", { type: "file", accept: "audio/*,.flac,.wav,.ogg,.mp3,.aiff", id: "speech-file", class: "said", tabindex: -1, "aria-label": "Open a sound file",
    onchange: () => { if (file.files[0]) take(file.files[0]); file.value = ""; } });
  const open = h("button", { type: "button", id: "speech-open", onclick: () => file.click() }, "Open a sound…");
  const examples = h("select", { id: "speech-example", "aria-label": "Examples", onchange: () => { if (examples.value) listen({ example: examples.value }); } });
  const about = h("dl", { class: "facts", id: "speech-facts" });
  const trouble = h("p", { class: "state error", role: "alert", id: "speech-trouble", hidden: true });
  const language = h("select", { id: "speech-language", "aria-label": "Language", title: "If none is named, it is detected in the first window" });
  const task = h("select", { id: "speech-task", "aria-label": "Task" }, h("option", { value: "transcribe" }, "as spoken"), h("option", { value: "translate" }, "in English"));
  const go = h("button", { type: "button", id: "speech-go", title: "Transcribe (G); press again to stop", onclick: () => (running ? running.abort() : transcribe()) });
  const loud = h("input", { type: "checkbox", id: "speech-aloud", checked: true });
  const before = h("button", { type: "button", class: "small-button", id: "speech-before", "aria-label": "Window before", onclick: () => turn(-1) }, "‹");
  const after = h("button", { type: "button", class: "small-button", id: "speech-after", "aria-label": "Window after", onclick: () => turn(1) }, "›");
  const where = h("span", { class: "num dim small", id: "speech-where" });
  const play = h("button", { type: "button", id: "speech-play", title: "Play what is in view", onclick: () => (player.playing ? player.stop() : player.play(...scale.view)) }, "Play");
  const stage = h("div", { class: "mel", id: "speech-mel" });
  const readout = h("div", { class: "readout", id: "speech-readout" }, " ");
  const energy = legend();
  const layer = h("select", { id: "speech-layer", "aria-label": "Layer", onchange: () => view(layer.value === "" ? null : Number(layer.value), null) });
  const head = h("select", { id: "speech-head", "aria-label": "Head", onchange: () => view(Number(layer.value), head.value === "" ? null : Number(head.value)) });
  const box = h("div", { class: "alignment-", id: "speech-map" });
  const scroll = h("div", { class: "alignment-" }, box);
  const fit = legend();
  const rowNote = h("div", { class: "readout", id: "speech-row" }, " ");
  const nothing = h("p", { class: "state empty", id: "speech-nothing" });

  const player = new Player((t) => {
    mel.play(t);
    play.textContent = t === null ? "Play" : "Stop";
    word.playing(t !== null);
  });
  const mel = new Mel(stage, scale, {
    name: "Log-mel energies over time. Left and right go through the words, Enter plays, + and − zoom.",
    pick: (t, found) => (found ? choose(found) : player.play(t, scale.whole[1])), move: (by) => step(by), enter: () => aloud(),
    hover: (t, band) => { readout.textContent = t === null ? " " : `${clock(t)}${band === null ? "" : `, band ${band}: ${short(energyAt(t, band))}`}`; },
  });
  const map = new AlignmentMap(box, scale, {
    name: "Where each token was heard: tokens down, time across. Up and down go through the tokens, Enter plays.",
    pick: (row, how) => chooseToken(row, how), enter: () => aloud(),
    hover: (row, t, value) => { rowNote.textContent = row === null ? " " : `${visible(aligned.labels[row])} at ${clock(aligned.times[row])}${value === null ? "" : `; looks at ${clock(t)} with ${short(value)}`}`; },
  });
  const text = speechText({ pick: (one, window) => choose(one, { window }), step: (by) => step(by), enter: () => aloud() });
  const word = speechWord(model, { play: () => aloud(), token: (row) => chooseToken(row), head: (a, b) => view(a, b), fail: (message) => say(message) });
  readOut(stage, readout);
  readOut(scroll, rowNote);

  const say = (message) => {
    trouble.hidden = !message;
    trouble.textContent = message ?? "";
  };

  function energyAt(t, band) {
    const { mels, start } = mel.data;
    const at = Math.floor((t - start) * 100);
    const { low, high } = state.sound;
    return at < mels.shape[1] ? low + (mels[band * mels.shape[1] + at] / 255) * (high - low) : low;
  }

  // --- a sound -------------------------------------------------------------------------------------

  async function take(from) {
    if (from.size > facts().largest) return say(`${from.name} has ${bytes(from.size)}; up to ${bytes(facts().largest)} are taken.`);
    if (!from.size) return say(`${from.name} is empty.`);
    el.setAttribute("aria-busy", "true");
    try {
      const progress = (done) => model.set("progress", { done, total: from.size, text: `sending ${from.name}` });
      progress(0);
      await send((action, args) => ask(model, action, args), from, progress);
    } catch (error) {
      el.removeAttribute("aria-busy");
      return idle(error) ? null : say(error.message);
    } finally {
      model.set("progress", null);
    }
    return listen({});
  }

  async function listen(args) {
    running?.abort();
    player.stop();
    say(null);
    el.setAttribute("aria-busy", "true");
    try {
      const found = await ask(model, "speech.listen", args, { slot: "speech" });
      if (!args.example) examples.value = "";
      await show(found, true);
    } catch (error) {
      if (!idle(error)) say(error.message);
    } finally {
      el.removeAttribute("aria-busy");
    }
  }

  /** Take over a state of the room; `fresh` says that its sound is another one. */
  async function show(found, fresh = false) {
    state = found;
    const { name, seconds, rate, channels } = found.sound;
    const kind = { 1: "mono", 2: "stereo" }[channels] ?? `${channels} channels`;
    put(about, h("div", {}, h("dd", { class: "speech-name" }, name)), [["lasts", clock(seconds)], ["file", `${rate / 1000} kHz, ${kind}`]]
      .map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", { class: "num" }, value))));
    text.write(state, facts().languages);
    unchoose();
    await turnTo(pages()[fresh ? 0 : Math.min(page, pages().length - 1)], { fresh });
  }

  /** Where windows begin: those that were heard, and the silence between them. */
  function pages() {
    const [all, long] = [state.sound.seconds, facts().seconds];
    const out = [];
    let t = 0;
    for (const start of [...state.windows.map((w) => w.start), all]) {
      for (; t < start - 0.005; t += long) out.push(t);
      if (start < all) {
        out.push(start);
        t = start + long;
      }
    }
    return out.length ? out : [0];
  }

  const turn = (by) => {
    const to = Math.max(0, Math.min(pages().length - 1, page + by));
    if (to === page) return;
    unchoose();
    turnTo(pages()[to]);
  };

  const current = () => state?.windows.findIndex((w) => Math.abs(w.start - pages()[page]) < 0.005) ?? -1;

  /** Show the window that begins at a second. */
  async function turnTo(start, { fresh = false, wait = true } = {}) {
    page = Math.max(0, pages().indexOf(start));
    const mine = (ticket += 1);
    const end = Math.min(state.sound.seconds, start + facts().seconds);
    where.textContent = pages().length > 1 ? `${clock(start, 1)} to ${clock(end, 1)} of ${clock(state.sound.seconds, 1)}` : "";
    before.hidden = after.hidden = pages().length < 2;
    [before.disabled, after.disabled] = [page === 0, page === pages().length - 1];
    if (fresh || !mel.data || Math.abs(mel.data.start - start) > 0.005) {
      const found = await ask(model, "speech.window", { start }, { slot: "speech-window" });
      if (mine !== ticket) return;
      scale.set(start, end);
      player.load(found.samples, found.start);
      mel.show({ mels: found.mels, start: found.start, ticks: facts().ticks });
      const { low, high } = state.sound;
      tell(energy, { name: "energy", ends: [low, high].map((v) => v.toFixed(1).replace("-", "−")), title: "Logarithm of the energy in each band, as the model gets it" });
    }
    mel.say(state.windows[current()]?.words ?? []);
    const done = align();
    if (wait) await done;
  }

  // --- the text ------------------------------------------------------------------------------------

  function working(on) {
    go.textContent = on ? "Stop" : "Transcribe";
    go.className = on ? "stopping" : "primary";
    if (on) return;
    running = null;
    model.set("progress", null);
  }

  async function transcribe() {
    if (!state || running) return;
    say(null);
    unchoose();
    running = new AbortController();
    working(true);
    text.begin();
    try {
      const args = { task: task.value, ...(language.value ? { language: language.value } : {}) };
      const found = await ask(model, "speech.transcribe", args, { slot: "speech-text", signal: running.signal });
      working(false);
      await show(found);
    } catch (error) {
      working(false);
      text.write(state, facts()?.languages ?? []);
      if (!idle(error)) say(error.message);
    }
  }

  const listener = (token) => running && text.hear(token);

  // --- a word --------------------------------------------------------------------------------------

  /** The word before or after the chosen one. */
  function step(by) {
    const list = state?.windows.flatMap((w, k) => w.words.map((one) => [k, one])) ?? [];
    if (!list.length) return;
    const at = chosen?.word ? list.findIndex(([, one]) => one === chosen.word) : by > 0 ? -1 : list.length;
    const [k, one] = list[Math.max(0, Math.min(list.length - 1, at + by))];
    choose(one, { window: k, quiet: true });
  }

  async function choose(one, { window = current(), quiet = false } = {}) {
    if (running) return;
    if (window !== current()) await turnTo(state.windows[window].start, { wait: false });
    chosen = { window, word: one, first: one.first, last: one.last, whole: true, start: one.start, end: one.end };
    mark();
    if (!quiet && loud.checked) aloud(true);
  }

  /** A single token, by its row. */
  function chooseToken(row, { quiet = false } = {}) {
    const own = state.windows[current()].words.find((w) => w.first <= row && row < w.last) ?? null;
    chosen = { window: current(), word: own, first: row, last: row + 1, whole: false, start: aligned.times[row], end: aligned.times[row + 1] ?? aligned.times[row] };
    mark();
    if (!quiet && loud.checked) aloud(true);
  }

  function unchoose() {
    player.stop();
    chosen = null;
    mark();
  }

  /** Play what is chosen, or all that is in view; `anew` also while something plays. */
  function aloud(anew = false) {
    if (player.playing && !anew) player.stop();
    else if (chosen) player.play(chosen.start, Math.max(chosen.end, chosen.start + 0.1));
    else player.play(...scale.view);
  }

  /** Show what is chosen, everywhere. */
  function mark() {
    const mine = chosen && aligned?.window === chosen.window;
    // A mark behind a word belongs to it, but is heard in the pause that follows.
    while (mine && chosen.whole && chosen.last > chosen.first + 1 && aligned.times[chosen.last - 1] >= chosen.end - 0.005) chosen.last -= 1;
    text.mark(chosen?.word ?? null);
    scale.focus = chosen && (chosen.start + chosen.end) / 2;
    if (chosen) scale.reveal(chosen.start, chosen.end);
    mel.choose(chosen, mine ? curve() : null);
    map.lock(...(mine ? [chosen.first, chosen.last] : [0, 0]));
    if (mine) {
      const y = chosen.first * map.row;
      if (y < scroll.scrollTop || y + map.row > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = y - scroll.clientHeight / 2;
    }
    const any = state?.windows.some((w) => w.words.length);
    word.show(chosen, state?.windows[chosen?.window], facts()?.alignment, any ? "Choose a word, in the text or under the mels: its sound is marked and played." : "No word yet.");
  }

  /** The attention of the chosen tokens over time: their mean. */
  function curve() {
    const values = new Float32Array(aligned.map.shape[1]);
    for (let r = chosen.first; r < chosen.last; r += 1) values.forEach((_, i) => { values[i] += map.value(r, i) / (chosen.last - chosen.first); });
    return { values, start: aligned.start, step: aligned.step };
  }

  // --- attention -----------------------------------------------------------------------------------

  /** Look at a layer's mean or one of its heads; with null at the alignment heads. */
  function view(a, b) {
    layer.value = a === null ? "" : String(a);
    head.value = b === null ? "" : String(b);
    head.hidden = a === null;
    if (state) align();
  }

  async function align() {
    const window = current();
    const mine = (ticket += 1);
    const none = window < 0 || !state.windows[window].tokens.length;
    if (none || aligned?.window !== window) {
      aligned = null;
      nothing.textContent = none ? "Once the sound is transcribed, this shows where each token was heard." : "Reading what each token looked at.";
    }
    nothing.hidden = Boolean(aligned);
    scroll.hidden = fit.hidden = !aligned;
    if (none) return;
    const [a, b] = [layer, head].map((x) => (layer.value === "" || x.value === "" ? null : Number(x.value)));
    el.setAttribute("aria-busy", "true");
    try {
      const found = await ask(model, "speech.alignment", { window, ...(a === null ? {} : { layer: a }), ...(b === null ? {} : { head: b }) }, { slot: "speech-map" });
      if (mine !== ticket) return;
      aligned = { ...found, window, layer: a, head: b, step: found.seconds, labels: state.windows[window].tokens.map((t) => t.text) };
      nothing.hidden = true;
      scroll.hidden = fit.hidden = false;
      map.show(aligned);
      tell(fit, a === null
        ? { name: "fit", ends: ["0", found.high.toFixed(1)], title: "Mean of the alignment heads, in deviations from the mean of all tokens; the line is the way that gives the times" }
        : { name: "attention", ends: ["0", percent(found.high)], title: "Attention weight; the line is the way of the alignment heads" });
      mark();
      word.lock(a, b);
    } catch (error) {
      if (!idle(error) && mine === ticket) say(error.message);
    } finally {
      if (mine === ticket) el.removeAttribute("aria-busy");
    }
  }

  // --- the page ------------------------------------------------------------------------------------

  el.addEventListener("dragover", (event) => {
    event.preventDefault();
    el.classList.add("dropping");
  });
  el.addEventListener("dragleave", (event) => el.contains(event.relatedTarget) || el.classList.remove("dropping"));
  el.addEventListener("drop", (event) => {
    event.preventDefault();
    event.stopPropagation();
    el.classList.remove("dropping");
    if (event.dataTransfer.files[0]) take(event.dataTransfer.files[0]);
  });

  const panel = (name, title, tools, ...children) => h("section", { class: `panel speech-${name}-panel`, "aria-labelledby": `h-speech-${name}` },
    h("div", { class: "row spread" }, h("h2", { id: `h-speech-${name}` }, title), h("span", { class: "row" }, tools)), children);
  el.classList.add("speech");
  el.append(
    h("div", { class: "speech-side column" },
      panel("sound", "Sound", [], h("div", { class: "row" }, open, file, examples), about, trouble, h("p", { class: "dim small" }, "Open or drop a WAV, FLAC, OGG or MP3; it stays on this machine.")),
      panel("text", "Text", [], h("div", { class: "row" }, go, language, task), text.el),
      panel("word", "Chosen word", h("label", { class: "check small" }, loud, "Play what is clicked"), word.el)),
    h("div", { class: "speech-main column" },
      panel("mel", "What the model hears", [before, where, after, play], stage, h("div", { class: "row spread" }, readout, energy)),
      panel("map", "Where each token was heard", [layer, head], nothing, scroll, h("div", { class: "row spread" }, rowNote, fit))),
  );
  working(false);

  // What keys do here.
  model.speech = {
    generate: () => go.click(), prompt: () => aloud(), token: step, unlock: unchoose,
    layer: (by) => {
      const count = layer.options.length - 1;
      const at = layer.value === "" ? (by > 0 ? -1 : count) : Number(layer.value);
      view(at + by < 0 || at + by >= count ? null : at + by, null);
    },
  };

  async function begin() {
    const info = facts();
    const had = state && !info?.examples.some(([, name]) => name === state.sound.name) ? state.sound.name : null;
    [state, chosen, aligned, page] = [null, null, null, 0];
    running?.abort();
    player.stop();
    say(null);
    if (!info) return;
    const { layers, heads } = model.get("info");
    const several = (count, name) => Array.from({ length: count }, (_, i) => h("option", { value: i }, `${name} ${i}`));
    put(examples, h("option", { value: "" }, "Examples"), info.examples.map(([value, name]) => h("option", { value }, name)));
    put(language, h("option", { value: "" }, "Any language"), info.languages.map(([code, name]) => h("option", { value: code }, name)));
    language.hidden = task.hidden = !info.languages.length;
    put(layer, h("option", { value: "" }, `Alignment heads (${info.alignment.length})`), several(layers, "Layer"));
    put(head, h("option", { value: "" }, "mean of heads"), several(heads, "Head"));
    layer.title = info.alignment_known ? "The heads that follow the speech, according to the model's files" : "The model does not say which heads follow the speech, so these are all heads of the later half of its layers";
    view(null, null);
    mark();
    try {
      await show(await ask(model, "speech.state", {}), true);
    } catch (error) {
      if (idle(error)) return;
      examples.value = info.examples[0][0];
      await listen({ example: examples.value });
      if (had) say(`The server does not have ${had} any more: open it again.`);
    }
  }

  model.on("event:transcript", listener);
  const off = watch(model, ["info"], begin);
  begin();
  return () => {
    off();
    model.off("event:transcript", listener);
    player.stop();
    mel.close();
    map.close();
  };
}
