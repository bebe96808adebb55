/** Sounds between the page and the server, and to the ear. Knows no view. */

// Bytes of one part of a file: a third more in base64, and within what a request may have.
const PART = 600_000;
const RATE = 16000;
const FADE = 0.006; // seconds, or a cut would click

function base64(bytes) {
  let text = "";
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}

/** Send a file in parts; `ask` asks for an action, `told(bytes)` is told how much has gone. */
export async function send(ask, file, told = () => {}) {
  await ask("speech.begin", { name: file.name || "sound", size: file.size });
  for (let at = 0; at < file.size; at += PART) {
    const part = new Uint8Array(await file.slice(at, at + PART).arrayBuffer());
    await ask("speech.part", { data: base64(part) });
    told(Math.min(file.size, at + PART));
  }
}

/** Plays spans of the samples it has; `tick(t)` is told where it is, null at the end. */
export class Player {
  constructor(tick) {
    this.tick = tick;
    [this.samples, this.start, this.now] = [null, 0, null];
  }

  /** Samples from a second on. */
  load(samples, start) {
    this.stop();
    [this.samples, this.start] = [samples, start];
  }

  get playing() {
    return this.now !== null;
  }

  play(from, to) {
    this.stop();
    if (!this.samples) return;
    const [a, b] = [from, to].map((t) => Math.max(0, Math.min(this.samples.length, Math.round((t - this.start) * RATE))));
    if (b <= a) return;
    this.context ??= new AudioContext();
    this.context.resume();
    const buffer = this.context.createBuffer(1, b - a, RATE);
    buffer.getChannelData(0).set(Float32Array.from(this.samples.subarray(a, b), (v) => v / 32768));
    const [source, gain] = [this.context.createBufferSource(), this.context.createGain()];
    const [begun, long] = [this.context.currentTime, (b - a) / RATE];
    gain.gain.setValueAtTime(0, begun);
    gain.gain.linearRampToValueAtTime(1, begun + Math.min(FADE, long / 2));
    gain.gain.setValueAtTime(1, begun + long - Math.min(FADE, long / 2));
    gain.gain.linearRampToValueAtTime(0, begun + long);
    source.buffer = buffer;
    source.connect(gain).connect(this.context.destination);
    const mine = { source, at: this.start + a / RATE };
    this.now = mine;
    source.onended = () => this.now === mine && this.stop();
    source.start(begun);
    const follow = () => {
      if (this.now !== mine) return;
      this.tick(mine.at + Math.min(long, Math.max(0, this.context.currentTime - begun)));
      requestAnimationFrame(follow);
    };
    follow();
  }

  stop() {
    if (!this.now) return;
    const { source } = this.now;
    this.now = null;
    source.onended = null;
    source.stop();
    this.tick(null);
  }
}
