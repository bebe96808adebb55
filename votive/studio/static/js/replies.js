/**
 * What the views read in the replies of the server. Types only; nothing here runs.
 *
 * Texts of tokens are as they stand in the text, with spaces and newlines. Blobs lie beside `data`
 * under their names as typed arrays with a `shape`. A field that is not there is shown as unknown.
 *
 * @typedef {{name: string, family: string, layers: number, heads: number, vocab: number,
 *   dtype: string, parameters: number, parts: {layers: string[], norm: ?string, head: ?string,
 *   embedding: ?string}, tree: {address: string, class: string}[]}} ModelInfo  model.info
 *
 * @typedef {{models: {name: string, text?: string, current?: boolean}[]}} Models  model.list
 *
 * @typedef {{id: number, parent: ?number, token: ?number, text: string, p: ?number,
 *   entropy: ?number, how: string, settings: number, edits: number}} Node
 *   `p` is the model's probability of the token, `entropy` (nats) that of what follows it.
 *   A root has `parent: null`, and its `text` is the prompt.
 *
 * @typedef {{nodes: Node[], current: number, prompt: {id: number, text: string}[], text: string,
 *   settings: Object<string, any>, seed: number, undo: number, redo: number, branch: number}} State
 *   session.state, and every session action but those below. `prompt` is that of the current path;
 *   `undo` and `redo` count the moves.
 *
 * @typedef {{node: number, before: Candidate[], after: Candidate[], entropy: number}} Top
 *   session.top, with `sampled` (whether tokens are drawn at all); with `settings` as they would be
 *   under these; @typedef {{id: number, text: string, p: number}} Candidate
 *
 * session.auto gives a State with `made` and `ended`: "count", "end" (the model ended the text) or
 * "context". session.rebuild {nodes, current, settings, seed} writes a tree again and gives a State
 * with `numbers`, the ids of the nodes in the order given.
 * @typedef {{ids: number[], texts: string[]}} Tokens  session.tokenise
 *
 * @typedef {{common: string, a: string, b: string, fork: ?number, a_in_a: ?number,
 *   a_in_b: ?number, b_in_a: ?number, b_in_b: ?number, kl_ab: number, kl_ba: number}} Diff
 *
 * @typedef {{files: {name: string, bytes: number, modified: string}[]}} Files  session.files
 * @typedef {{text: string}} Script  session.script
 *
 * @typedef {{edits: Edit[], receipts: Receipt[]}} Edits  edits.list, edits.set, edits.remove,
 *   edits.swap; @typedef {{at: string, do: string, value?: any, positions?: number[],
 *   features?: number[]}} Edit; @typedef {{at: string, do: string, text: string, count: number,
 *   before?: number, after?: number}} Receipt   `count` is how many calls it was made in.
 *
 * @typedef {{active: boolean, ended: boolean, index: number, phase: string, address: ?string,
 *   name: string, kind: string, stack: string[], depth: number, breakpoints: {at: string,
 *   hits: number}[], values: {path: string, side: string, shape: number[], dtype: string}[],
 *   changes: number, error: ?string, top?: Candidate[]}} Debug  every debug action; `top` are the
 *   next tokens when the run has ended; debug.value gives a Value.
 *
 * @typedef {{address: string, shape: number[], dtype: string, rows: [number, number],
 *   cols: [number, number], total: [number, number], min: number, max: number,
 *   statistics?: Statistics}} Value  value.window and debug.value, with a blob `values` (f32, or u8
 *   between min and max when `reduce` was asked for), (rows, cols) of the value seen as a matrix.
 * @typedef {{shape: number[], dtype: string, count: number, nan: number, inf: number,
 *   zeros: number, mean: number, std: number, min: number, max: number, norm: number,
 *   histogram: number[]}} Statistics  value.statistics
 *
 * @typedef {{names: string[], tokens: string[], texts: string[][], ids: number[][], target?: number,
 *   rank?: number[][]}} Lens  lens.grid, with blobs `p`, `entropy`, `kl` and, with a target,
 *   `target_p` (rows, positions);
 *   row 0 is the embedding. lens.cell: {top: Candidate[], entropy: number}.
 *
 * @typedef {{layer: number, heads: number[], tokens: string[]}} Attention  attention.layer, with
 *   a blob `weights` (heads, T, T) u8; attention.row has a blob `weights` (T,) f32;
 *   attention.heads {layers: number, heads: number} has blobs `entropy`, `previous`, `induction`
 *   (layers, heads).
 *
 * @typedef {{rows: {address: string, part: string, layer: number, norm: number, mean: number,
 *   std: number}[]}} Layers  layers.statistics; part is "residual", "attention" or "mlp".
 * @typedef {{rows: {address: string, class: string, seconds: number, bytes: number,
 *   calls: number}[], seconds: number}} Profile  profile.run
 * @typedef {{layers: {name: string, layer: ?number, weight: ?number, stream: ?number, kl: ?number}[],
 *   sites: {address: string, layer: ?number, format: string, bits: number, weight: ?number,
 *   output: ?number}[], tokens: number, kl: ?number, same_top: ?number, perplexity: ?number,
 *   perplexity_original: ?number, python: string}} Quantization  quantization.error
 * @typedef {{name: string, tokens: number, python: string, eager: string, rules: {name: string,
 *   count: number}[], kernels: {name: string, device: string, calls: string[], addresses: string[],
 *   bytes: number, source: ?string}[], operators: {name: string, count: number}[], graphs: {name: string, calls: number, text: string,
 *   inputs: string[], peak: number, runs: number, sizes: string[]}[]}} Compiled  compiled.run
 * @typedef {{name: string, parts: {title: string, text: string, code?: string}[],
 *   names?: string[]}} Explain  explain.op
 * @typedef {{lines: string[]}} Console  console.log; event `console` {line: string}
 * @typedef {{job: string, id: number, text: string}} Busy  event `busy`: what is done, or waited for
 */
export {};
