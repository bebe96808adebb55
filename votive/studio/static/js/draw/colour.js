/** Colours of heat maps, taken from the page's style so that light and dark fit. Draws nothing. */

const DEFAULTS = {
  "--surface": "#ffffff", "--text": "#1d2125", "--dim": "#667079", "--line": "#d9dde1",
  "--accent": "#0f6e84", "--heat-mid": "#7fb9c6", "--heat-high": "#084b5b", "--negative": "#2f62b5",
  "--positive": "#bf5a14", "--zero": "#ffffff",
};

/** The named colours in force at an element. */
export function palette(el) {
  const style = getComputedStyle(el);
  return Object.fromEntries(Object.entries(DEFAULTS).map(([name, plain]) =>
    [name.slice(2), style.getPropertyValue(name).trim() || plain]));
}

function rgb(hex) {
  const n = parseInt(hex.slice(1, 7), 16);
  return [n >> 16, (n >> 8) & 255, n & 255];
}

function ramp(stops) {
  const table = new Uint8ClampedArray(256 * 3);
  const colours = stops.map(rgb);
  for (let i = 0; i < 256; i += 1) {
    const at = (i / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(at), colours.length - 2);
    for (let c = 0; c < 3; c += 1) {
      table[3 * i + c] = colours[low][c] + (at - low) * (colours[low + 1][c] - colours[low][c]);
    }
  }
  return table;
}

/** 256 colours for values from 0 up. */
export function sequential(colours) {
  return ramp([colours.surface, colours["heat-mid"], colours["heat-high"]]);
}

/** 256 colours around zero. */
export function diverging(colours) {
  return ramp([colours.negative, colours.zero, colours.positive]);
}

/** Black or white, whichever can be read on a colour of a table. */
export function inkOn(table, index) {
  const [r, g, b] = table.subarray(3 * index, 3 * index + 3);
  return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#15191c" : "#ffffff";
}

/** A colour of a table as text. */
export function css(table, index) {
  return `rgb(${table[3 * index]} ${table[3 * index + 1]} ${table[3 * index + 2]})`;
}

/** The place of a value in a table of 256. */
export function place(value, low, high) {
  if (!(high > low)) return 0;
  return Math.max(0, Math.min(255, Math.round((255 * (value - low)) / (high - low))));
}
