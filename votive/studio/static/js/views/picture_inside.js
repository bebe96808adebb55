/** The inside of a layer, and the arithmetic of one head, as the picture of the model shows them when one goes nearer. */

import { h, percent, short, visible } from "../dom.js";
import { strip } from "../draw/flow.js";

const few = (x) => short(Number(x.toPrecision(3)));

/** One line of a layer: a sign, a name, its values, its length, and where to look at it. */
function line(sign, name, title, values, size, more = null) {
  return h("div", { class: "inside-row" }, h("span", { class: "inside-sign", "aria-hidden": "true" }, sign), h("span", { class: "inside-name", title }, name),
    values ? strip(values, { name }) : h("span"), h("span", { class: "num dim", title: "Its length" }, size === undefined ? "" : few(size)), more);
}

const link = (text, title, f) => h("button", { type: "button", class: "quiet", title, onclick: f }, text);

/** What happens in a layer at one position. */
export function layerInside({ data, tokens, go, jump, choose }) {
  const { layer, addresses, sizes, scales } = data;
  const [H, T] = data.pattern.shape;
  const rows = Array.from({ length: H }, (_, i) => data.pattern.subarray(i * T, (i + 1) * T));
  const at = (name) => addresses[name] ?? addresses.residual;
  const debug = (address) => link("values", "Look at its values under Debugger", () => jump("debugger", { layer, address }));
  const heads = h("div", { class: "inside-heads", role: "group", "aria-label": "Heads" }, rows.map((row, i) => {
    const best = row.indexOf(Math.max(...row));
    const z = data["attn.z"]?.subarray((i * data["attn.z"].length) / H, ((i + 1) * data["attn.z"].length) / H);
    return h("button", { type: "button", class: "inside-head", "data-head": i, title: `Head ${i}: open its arithmetic`, onclick: () => go({ kind: "head", layer, head: i }) },
      h("b", {}, `head ${i}`), h("span", { class: "dim" }, `${percent(row[best])} at `, h("span", { class: "word" }, visible(tokens[best] ?? ""))),
      h("span", { class: "inside-look", "aria-hidden": "true" }, Array.from(row.subarray(Math.max(0, T - 40)), (v) => h("i", { style: { "--v": v.toFixed(3) } }))), z ? strip(z, { most: 48, name: `what head ${i} read` }) : null);
  }));
  const neurons = data.neurons.length ? h("div", { class: "chips" }, data.neurons.map((n) => h("span", { class: "chip", title: `Neuron ${n.number} of this layer` }, `${n.number} `, h("span", { class: "num dim" }, few(n.value)))),
    data.active === null ? null : h("span", { class: "small dim" }, `${percent(data.active)} of the neurons are above a tenth of the strongest`)) : null;
  const norm = (scale) => (scale === undefined ? "norm" : `norm, ÷ ${few(scale)}`);
  return h("div", { class: "inside" },
    line("", "stream", "What all layers before have written", data.resid_pre, sizes.resid_pre, link("lens", "What the model would say here", () => jump("lens", { layer, position: data.position }))),
    line("↱", norm(scales["ln1.scale"]), "The norm before attention divides by the size of the stream", data["ln1.normalized"], sizes["ln1.normalized"], debug(addresses.norms?.[0] ?? addresses.residual)),
    heads,
    line("+", "attention", "What attention adds to the stream", data.attn_out, sizes.attn_out, h("span", {}, debug(at("attention")), link("attention", "Where each token looks", () => jump("attention", { layer })))),
    line("=", "stream", "The stream between attention and MLP", data.resid_mid, sizes.resid_mid),
    line("↱", norm(scales["ln2.scale"]), "The norm before the MLP divides by the size of the stream", data["ln2.normalized"], sizes["ln2.normalized"], debug(addresses.norms?.[1] ?? addresses.residual)),
    neurons, line("", "neurons", "Neurons of the MLP, behind their activation", data["mlp.post"], sizes["mlp.post"]),
    line("+", "MLP", "What the MLP adds to the stream", data.mlp_out, sizes.mlp_out, debug(at("mlp"))),
    line("=", "stream", "What goes on to the next layer", data.resid_post, sizes.resid_post, debug(addresses.residual)),
    h("div", { class: "row" }, h("button", { type: "button", disabled: data.position === 0, onclick: () => choose(data.position - 1) }, "Token before"),
      h("button", { type: "button", disabled: data.position >= tokens.length - 1, onclick: () => choose(data.position + 1) }, "Token after")));
}

/** How a head comes to what it gives: scores, weights, values, sum; and what its result makes likelier. */
export function headInside({ data, jump, choose }) {
  const { layer, head, rows } = data;
  const size = data.values?.shape[1] ?? 0;
  const value = (i) => (data.values ? data.values.subarray(i * size, (i + 1) * size) : null);
  const root = data.root ? `√${data.dimension}` : "√d";
  return h("div", { class: "inside" },
    h("p", { class: "small" }, "The query of ", h("b", { class: "word" }, visible(data.text)), ` is multiplied with the key of each token and divided by ${root}: that is the score. Softmax makes weights of the scores, which add up to 100%. The result is the sum of the values, each times its weight.`),
    h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Arithmetic of the head" }, h("table", { class: "compare arithmetic" }, h("thead", {}, h("tr", {}, [["looks at", ""], ["query · key", "num"], [`score`, "num"], ["weight", "num"], ["value", ""], ["weight × length", "num"]].map(([t, c]) => h("th", { scope: "col", class: c }, t)))),
      h("tbody", {}, rows.map((r, i) => h("tr", {}, h("th", { scope: "row" }, h("button", { type: "button", class: "quiet word", title: `Look from ${visible(r.text)} instead`, onclick: () => choose(r.position) }, visible(r.text)), h("span", { class: "dim num" }, ` ${r.position}`)),
        h("td", { class: "num" }, r.dot === null ? "–" : few(r.dot)), h("td", { class: "num" }, short(r.score === null ? NaN : Number(r.score.toPrecision(3)))),
        h("td", { class: "num", style: { "--share": `${100 * r.weight}%` } }, percent(r.weight)), h("td", {}, value(i) ? strip(value(i), { most: 32, name: `value of ${visible(r.text)}` }) : "–"),
        h("td", { class: "num" }, r.value === null ? "–" : few(r.weight * r.value)))),
      data.rest > 0.0005 ? h("tr", {}, h("th", { scope: "row", class: "dim" }, "all others"), h("td"), h("td"), h("td", { class: "num" }, percent(data.rest)), h("td"), h("td")) : null),
      h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "sum"), h("td"), h("td"), h("td", { class: "num" }, percent(rows.reduce((a, r) => a + r.weight, data.rest))), h("td", {}, strip(data.z, { most: 32, name: "the sum" })), h("td", { class: "num", title: "Length of the sum" }, few(data.size)))))),
    data.promotes ? h("div", { class: "two" }, promoted("Makes likelier", data.promotes.up), promoted("Makes less likely", data.promotes.down)) : null,
    h("div", { class: "row" }, link("Attention of this head", "Where each token looks", () => jump("attention", { layer, head })),
      link("Values under Debugger", "Look at the layer's values", () => jump("debugger", { layer }))));
}

const promoted = (title, list) => h("div", {}, h("h3", { class: "small dim", title: "What the head wrote, read through the last norm as it was and the head; in logits, less the mean" }, title),
  h("div", { class: "chips" }, list.map((t) => h("span", { class: "chip" }, visible(t.text), " ", h("span", { class: "num dim" }, few(t.value))))));
