/** The modules of a model as a tree of rows that can be folded. Pure; draws nothing. */

/** Nested {address, name, class, children} from a flat list of addresses. */
export function nested(tree) {
  const root = { address: "", name: "model", class: "", children: [] };
  const found = new Map([["", root]]);
  for (const { address, class: kind } of tree ?? []) {
    if (address === "") {
      root.class = kind;
      continue;
    }
    const cut = address.lastIndexOf(".");
    const own = { address, name: address.slice(cut + 1), class: kind, children: [] };
    found.set(address, own);
    let up = cut < 0 ? "" : address.slice(0, cut);
    while (!found.has(up)) up = up.includes(".") ? up.slice(0, up.lastIndexOf(".")) : "";
    found.get(up).children.push(own);
  }
  return root;
}

/** The rows that are in view: folded ones hide what is in them. */
export function rows(root, open) {
  const out = [];
  const walk = (node, depth) => {
    out.push({ ...node, depth, leaf: node.children.length === 0, open: open.has(node.address) });
    if (open.has(node.address)) node.children.forEach((c) => walk(c, depth + 1));
  };
  root.children.forEach((c) => walk(c, 0));
  return out;
}

/** The address of the module that an address of a call belongs to. */
export function moduleOf(address) {
  return (address ?? "").split("/")[0].split("#")[0];
}

/** The number of the layer that an address lies in, or null. */
export function layerOf(info, address) {
  const at = moduleOf(address);
  const found = (info?.parts?.layers ?? []).findIndex((l) => at === l || at.startsWith(`${l}.`));
  return found < 0 ? null : found;
}

/** All addresses above one. */
export function above(address) {
  const parts = moduleOf(address).split(".");
  return parts.slice(0, -1).map((_, i) => parts.slice(0, i + 1).join("."));
}
