"""hand-written Qwen3-0.6B-shaped decode with a static cache; python gpu_me/decode.py votive|torch eager|compile rows"""
import sys, time
lib, how = sys.argv[1:3]; R = int(sys.argv[3]) if len(sys.argv) > 3 else 1
size = sys.argv[4] if len(sys.argv) > 4 else "0.6b"
if lib == "torch":
    import torch as vt, torch.nn as nn, torch.nn.functional as F
else:
    import votive as vt, votive.nn as nn, votive.nn.functional as F
d, L, H, K, D, f, V, S, QK = dict([("0.6b", (1024, 28, 16, 8, 128, 3072, 151936, 1024, True)), ("8b", (4096, 32, 32, 8, 128, 14336, 128256, 1024, False)), ("tiny", (64, 2, 4, 2, 16, 96, 128, 64, True))])[size]
class RMSNorm(nn.Module):
    def __init__(s, d, eps=1e-6):
        super().__init__(); s.weight = nn.Parameter(vt.ones(d)); s.eps = eps
    def forward(s, x):
        h = x.float(); h = h * vt.rsqrt(h.pow(2).mean(-1, keepdim=True) + s.eps)
        return s.weight * h.to(x.dtype)
def rotate_half(x):
    a, b = x.chunk(2, dim=-1); return vt.cat((-b, a), dim=-1)
class Attn(nn.Module):
    def __init__(s):
        super().__init__()
        s.q = nn.Linear(d, H*D, bias=False); s.k = nn.Linear(d, K*D, bias=False); s.v = nn.Linear(d, K*D, bias=False); s.o = nn.Linear(H*D, d, bias=False)
        s.qn, s.kn = (RMSNorm(D), RMSNorm(D)) if QK else (nn.Identity(), nn.Identity())
    def forward(s, x, cos, sin, ck, cv, pos, mask):
        B, T, _ = x.shape
        q = s.qn(s.q(x).view(B, T, H, D)).transpose(1, 2); k = s.kn(s.k(x).view(B, T, K, D)).transpose(1, 2); v = s.v(x).view(B, T, K, D).transpose(1, 2)
        q = q*cos + rotate_half(q)*sin; k = k*cos + rotate_half(k)*sin
        ck.index_copy_(2, pos, k); cv.index_copy_(2, pos, v)
        y = F.scaled_dot_product_attention(q, ck, cv, attn_mask=mask, enable_gqa=True)
        return s.o(y.transpose(1, 2).reshape(B, T, H*D))
class MLP(nn.Module):
    def __init__(s):
        super().__init__(); s.g = nn.Linear(d, f, bias=False); s.u = nn.Linear(d, f, bias=False); s.dn = nn.Linear(f, d, bias=False)
    def forward(s, x): return s.dn(F.silu(s.g(x))*s.u(x))
class Block(nn.Module):
    def __init__(s):
        super().__init__(); s.n1 = RMSNorm(d); s.at = Attn(); s.n2 = RMSNorm(d); s.mlp = MLP()
    def forward(s, x, *a):
        x = x + s.at(s.n1(x), *a); return x + s.mlp(s.n2(x))
class Model(nn.Module):
    def __init__(s):
        super().__init__(); s.e = nn.Embedding(V, d); s.b = nn.ModuleList([Block() for _ in range(L)]); s.n = RMSNorm(d); s.head = nn.Linear(d, V, bias=False)
        inv = 1.0/(1e6**(vt.arange(0, D, 2).float()/D)); s.register_buffer("inv", inv, persistent=False)
    def forward(s, ids, pos, cache):
        h = s.e(ids)
        a = pos.float()[:, None]*s.inv.float()[None]; a = vt.cat((a, a), dim=-1); cos, sin = a.cos().to(h.dtype), a.sin().to(h.dtype)
        mask = (vt.arange(S, device=ids.device)[None] <= pos[:, None])[None, None]
        for b, (ck, cv) in zip(s.b, cache): h = b(h, cos, sin, ck, cv, pos, mask)
        return s.head(s.n(h))[:, -1].argmax(-1, keepdim=True)
dev = sys.argv[5] if len(sys.argv) > 5 else "cuda"
vt.manual_seed(0); 
with vt.device(dev): vt.set_default_dtype(vt.bfloat16); m = Model(); vt.set_default_dtype(vt.float32)
m = m.to(dev).eval()
cache = [(vt.zeros(R, K, S, D, dtype=vt.bfloat16, device=dev), vt.zeros(R, K, S, D, dtype=vt.bfloat16, device=dev)) for _ in range(L)]
step = m if how == "eager" else vt.compile(m, mode="reduce-overhead")
ids = vt.zeros(R, 1, dtype=vt.long, device=dev) + 7; pos = vt.zeros(1, dtype=vt.long, device=dev)
def run(n):
    global ids, pos
    out = []
    for _ in range(n):
        nxt = step(ids, pos, cache); ids.copy_(nxt); pos += 1; out.append(nxt.clone())
    return vt.cat(out, 1)[0].tolist()
with vt.no_grad():
    t = time.time(); run(1); first = time.time()-t; toks = run(7)
    n = 200 if dev == "cuda" else 5; vt.cuda.synchronize() if dev == "cuda" else 0; t = time.time(); run(n); t = (time.time()-t)/n
print(lib, how, size, R, f"first {first:.1f}s {1/t:.1f} steps/s", toks, flush=True)
