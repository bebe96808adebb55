/**
 * The line to the server: requests with ids, replies with blobs, events, reconnect.
 * Knows no views. See `frame` for the layout of what comes back.
 */

const TYPES = {
  u8: Uint8Array, i8: Int8Array, i16: Int16Array, i32: Int32Array, u16: Uint16Array,
  u32: Uint32Array, f32: Float32Array, f64: Float64Array,
};

/** Header and blobs of a binary frame: uint32 length, JSON, blobs at multiples of 8. */
export function frame(buffer) {
  const view = new DataView(buffer);
  const length = view.getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const base = Math.ceil((4 + length) / 8) * 8;
  const blobs = {};
  for (const blob of header.blobs ?? []) {
    const Type = TYPES[blob.dtype];
    const count = blob.shape.reduce((a, b) => a * b, 1);
    const values = Type
      ? new Type(buffer, base + blob.at, count)
      : Array.from(new BigInt64Array(buffer, base + blob.at, count), Number);
    values.shape = blob.shape;
    blobs[blob.name] = values;
  }
  return { header, blobs };
}

// The code with which a server ends a line whose token it does not know.
const REFUSED = 4401;

/** An error that the server told. */
export class Refused extends Error {
  constructor({ type, message, address }) {
    // As a sentence; what begins with a name of something stays as it is.
    super(/^[a-z]+ /.test(message) ? message[0].toUpperCase() + message.slice(1) : message);
    this.type = type;
    this.address = address ?? null;
  }
}

/** A request that was cancelled, or overtaken by a newer one. */
export class Cancelled extends Error {}

/** A request that was lost with the connection. */
export class Lost extends Error {}

/** One connection that comes back by itself. Events: those of the server, and "status". */
export class Link {
  constructor(url, { first = null } = {}) {
    this.url = url;
    this.first = first; // gives what is sent first of all, to find the session again
    this.status = "connecting";
    this.waiting = new Map();
    this.slots = new Map();
    this.listeners = new Map();
    this.next = 1;
    this.tries = 0;
    this.closed = false;
  }

  on(name, f) {
    if (!this.listeners.has(name)) this.listeners.set(name, new Set());
    this.listeners.get(name).add(f);
    return () => this.listeners.get(name).delete(f);
  }

  emit(name, ...args) {
    for (const f of this.listeners.get(name) ?? []) f(...args);
  }

  tell(status, detail) {
    this.status = status;
    this.emit("status", status, detail);
  }

  connect() {
    clearTimeout(this.timer);
    if (this.closed || this.socket?.readyState <= 1) return;
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      const first = this.first?.();
      if (first) socket.send(JSON.stringify(first));
    };
    socket.onmessage = (event) => {
      if (socket !== this.socket) return;
      if (this.status !== "open") {
        // Only a server that speaks has let this page in.
        this.tries = 0;
        this.tell("open");
      }
      if (typeof event.data === "string") this.take(JSON.parse(event.data), {});
      else {
        const { header, blobs } = frame(event.data);
        this.take(header, blobs);
      }
    };
    socket.onclose = (event) => {
      if (socket === this.socket) this.lose(event);
    };
  }

  lose(event) {
    this.socket = null;
    for (const { reject } of this.waiting.values()) reject(new Lost("the connection was lost"));
    this.waiting.clear();
    this.slots.clear();
    if (this.closed || this.status === "paused") return;
    if (event?.code === REFUSED) {
      this.tell("refused", { reason: event.reason });
      return;
    }
    this.tries += 1;
    const wait = Math.min(250 * 2 ** (this.tries - 1), 5000);
    this.tell("lost", { tries: this.tries, wait, code: event?.code, reason: event?.reason });
    this.timer = setTimeout(() => {
      this.tell("connecting", { tries: this.tries });
      this.connect();
    }, wait);
  }

  /** Stay away until `connect` is called. */
  pause(reason) {
    this.tell("paused", { reason });
    this.socket?.close();
  }

  take(header, blobs) {
    if (header.event) {
      this.emit(header.event, header.data ?? header, blobs);
      return;
    }
    const asked = this.waiting.get(header.id);
    if (!asked) return;
    this.waiting.delete(header.id);
    if (this.slots.get(asked.slot) === header.id) this.slots.delete(asked.slot);
    this.emit("activity", this.waiting.size);
    if (header.cancelled) asked.reject(new Cancelled("cancelled"));
    else if (header.ok === false) asked.reject(new Refused(header.error));
    else asked.resolve({ ...header.data, ...blobs });
  }

  /** Ask for an action; a newer request of the same slot overtakes an older one. */
  ask(action, args = {}, { slot = null, signal = null } = {}) {
    if (this.socket?.readyState !== 1) return Promise.reject(new Lost("there is no connection"));
    const id = this.next++;
    const message = { id, do: action, args };
    if (slot) {
      message.slot = slot;
      const old = this.waiting.get(this.slots.get(slot));
      if (old) old.overtaken = true;
      this.slots.set(slot, id);
    }
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, slot, action });
      this.emit("activity", this.waiting.size);
      this.socket.send(JSON.stringify(message));
      signal?.addEventListener("abort", () => this.cancel(id), { once: true });
    });
  }

  cancel(id) {
    if (this.waiting.has(id) && this.socket?.readyState === 1) {
      this.socket.send(JSON.stringify({ cancel: id }));
    }
  }

  /** Cancel all that is under way. */
  cancelAll() {
    for (const id of this.waiting.keys()) this.cancel(id);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }
}
