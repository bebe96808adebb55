"""hand-written GPT-2 124M, bf16 autocast; python gpu_me/gpt2.py votive|torch eager|compile"""
import sys, time, math
lib, how = sys.argv[1:3]
B = int(sys.argv[3]) if len(sys.argv) > 3 else 16
if lib == "torch":
    import torch as vt, torch.nn as nn, torch.nn.functional as F
else:
    import votive as vt, votive.nn as nn, votive.nn.functional as F
class Attn(nn.Module):
    def __init__(s, d, h):
        super().__init__(); s.h = h; s.qkv = nn.Linear(d, 3*d); s.o = nn.Linear(d, d)
    def forward(s, x):
        B, T, C = x.shape
        q, k, v = s.qkv(x).split(C, dim=2)
        q, k, v = [t.view(B, T, s.h, C//s.h).transpose(1, 2) for t in (q, k, v)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return s.o(y.transpose(1, 2).contiguous().view(B, T, C))
class MLP(nn.Module):
    def __init__(s, d):
        super().__init__(); s.a = nn.Linear(d, 4*d); s.g = nn.GELU(approximate="tanh"); s.c = nn.Linear(4*d, d)
    def forward(s, x): return s.c(s.g(s.a(x)))
class Block(nn.Module):
    def __init__(s, d, h):
        super().__init__(); s.n1 = nn.LayerNorm(d); s.at = Attn(d, h); s.n2 = nn.LayerNorm(d); s.mlp = MLP(d)
    def forward(s, x):
        x = x + s.at(s.n1(x)); return x + s.mlp(s.n2(x))
class GPT(nn.Module):
    def __init__(s, V=50304, d=768, L=12, h=12, T=1024):
        super().__init__(); s.wte = nn.Embedding(V, d); s.wpe = nn.Embedding(T, d)
        s.b = nn.ModuleList([Block(d, h) for _ in range(L)]); s.n = nn.LayerNorm(d); s.head = nn.Linear(d, V, bias=False)
        s.head.weight = s.wte.weight
    def forward(s, x, y):
        B, T = x.shape
        h = s.wte(x) + s.wpe(vt.arange(T, device=x.device))
        for b in s.b: h = b(h)
        l = s.head(s.n(h))
        return F.cross_entropy(l.view(-1, l.shape[-1]), y.view(-1))
vt.manual_seed(0)
m = GPT().to("cuda")
opt = vt.optim.AdamW(m.parameters(), lr=1e-4, fused=True)
x = vt.randint(0, 50304, (B, 1024), device="cuda"); y = vt.randint(0, 50304, (B, 1024), device="cuda")
f = m if how == "eager" else vt.compile(m)
def step():
    with vt.autocast("cuda", dtype=vt.bfloat16):
        loss = f(x, y)
    loss.backward(); opt.step(); opt.zero_grad(); return loss
t = time.time(); l = [step().item()]; first = time.time() - t
for _ in range(4): l.append(step().item())
vt.cuda.synchronize(); vt.cuda.reset_peak_memory_stats()
n = 20; t = time.time()
for _ in range(n): loss = step()
loss.item(); vt.cuda.synchronize(); t = (time.time()-t)/n
print(lib, how, f"first {first:.1f}s  {t*1e3:.2f} ms/step  {B*1024/t/1e3:.1f}k tok/s  peak {vt.cuda.max_memory_allocated()/2**30:.2f} GiB", [round(v,4) for v in l], flush=True)
