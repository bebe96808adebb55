"""Families of layers: convolutions, norms, pools, losses, optimizers, networks."""

from __future__ import annotations

from typing import Any

from .registry import family, tensor_of


@family
def convolutions(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32", "float64"):
        x = tensor_of(vt, 8, 64, 32, 32, dtype=dtype)
        for w, groups in ((tensor_of(vt, 64, 64, 3, 3, dtype=dtype), 1), (tensor_of(vt, 64, 1, 3, 3, dtype=dtype), 64)):
            w.requires_grad_()
            F.conv2d(x.detach().requires_grad_(), w, padding=1, groups=groups).sum().backward()
        F.conv2d(x.to(memory_format=vt.channels_last), w, stride=2, groups=64)
        last = x.to(memory_format=vt.channels_last).requires_grad_()
        F.conv2d(last, tensor_of(vt, 64, 64, 3, 3, dtype=dtype).requires_grad_(), stride=2, padding=1).sum().backward()


@family
def little_convolutions(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32", "float64"):
        x, w = tensor_of(vt, 13, 3, 45, dtype=dtype), tensor_of(vt, 64, 3, 3, dtype=dtype)
        F.conv1d(x, w, tensor_of(vt, 64, dtype=dtype))
        F.conv_transpose1d(tensor_of(vt, 5, 64, 1, dtype=dtype), w)
        F.conv2d(tensor_of(vt, 2, 20, 7, 7, dtype=dtype), tensor_of(vt, 8, 20, 3, 3, dtype=dtype), padding=1)
        F.conv_transpose3d(
            tensor_of(vt, 2, 20, 3, 4, 4, dtype=dtype), tensor_of(vt, 20, 7, 3, 3, 3, dtype=dtype), stride=2
        )


@family
def batch_norms(vt: Any) -> None:
    x = tensor_of(vt, 8, 64, 32, 32).requires_grad_()
    norm = vt.nn.BatchNorm2d(64, device="cuda", dtype=vt.bfloat16)
    norm(x).sum().backward()
    vt.nn.functional.group_norm(x, 8).sum().backward()
    running = [tensor_of(vt, 64), tensor_of(vt, 64)]
    vt.nn.functional.instance_norm(x, *running)


@family
def small_batches(vt: Any) -> None:
    for dtype in ("bfloat16", "float64"):
        x = tensor_of(vt, 8, 16, 7, dtype=dtype)
        vt.nn.BatchNorm1d(16, device="cuda", dtype=x.dtype)(x)
        vt.cat([x.mT, x.mT], 1)
        vt.nn.functional.dropout(x.mT, 0.5)
        for draw in ("uniform_", "normal_", "exponential_", "cauchy_", "random_"):
            getattr(x.mT, draw)()
        x.mT.geometric_(0.5)
        vt.bernoulli(x.mT.contiguous())
        vt.bernoulli(x.mT)


@family
def pools(vt: Any) -> None:
    F = vt.nn.functional
    x = tensor_of(vt, 4, 16, 32, 32).requires_grad_()
    F.max_pool2d(x, 3, 2, 1).sum().backward()
    F.avg_pool2d(x, 3, 2, 1).sum().backward()
    F.adaptive_avg_pool2d(x, 7).sum().backward()
    F.adaptive_max_pool2d(x, 7).sum().backward()
    F.max_pool2d(x.detach(), 2)
    last = x.detach().permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    for y in (x, last):  # large windows
        F.adaptive_avg_pool2d(y, 3)
        F.adaptive_avg_pool2d(y, 2)
        F.adaptive_max_pool2d(y, 3).sum()
        F.avg_pool2d(y, 9, 4, 2, divisor_override=3)
        F.max_pool2d(y.detach().double(), 9, 4, 2)
    F.interpolate(last, size=(20, 40), mode="bicubic")
    F.fractional_max_pool2d(x.detach(), 2, output_size=9)
    F.avg_pool2d(vt.zeros(1, 2, 8, 8, dtype=vt.int64, device="cuda"), 2)
    F.interpolate(x, scale_factor=2, mode="bilinear").sum().backward()
    F.interpolate(x, scale_factor=2)
    F.fold(F.unfold(x, 3), (32, 32), 3)


@family
def points(vt: Any) -> None:
    x, i = tensor_of(vt, 300, 16, dtype="float32"), vt.zeros(300, dtype=vt.int64, device="cuda")
    vt.cdist(x, x)
    vt.cdist(x, x, p=3.0)
    vt.cross(x[:, :3], x[:, 3:6], 1)
    vt.isin(i, i)
    vt.searchsorted(x[:, 0], x[:, 1], sorter=i)
    vt.histogramdd(x[:, :2], bins=[4, 5], range=[0.0, 1.0, 0.0, 1.0])
    vt.mode(x, 0)
    vt.combinations(i[:10], 3)
    vt.frexp(x)
    for dtype in ("float32", "bfloat16"):
        y = x.to(getattr(vt, dtype))
        vt.nextafter(y, y)
        vt.scatter_reduce(y, 0, i[:, None], y, "prod")
    vt.as_strided(x.requires_grad_(), (3, 3), (1, 1)).sum().backward()
    offsets = vt.zeros(4, dtype=vt.int64, device="cuda")
    vt.nn.functional.embedding_bag(i, x, offsets, mode="max")


@family
def alignments(vt: Any) -> None:
    from votive.ops.registry import F as ops

    for n in (20, 600):
        x = tensor_of(vt, 50, 4, 30, dtype="float32")
        lengths = vt.zeros(4, dtype=vt.int64, device="cuda")
        targets = vt.zeros(4, n, dtype=vt.int64, device="cuda")
        ops._ctc_loss(x, targets, lengths, lengths, 0, False)
        ops._ctc_loss_backward(x[0, :, 0], x, targets, lengths, lengths, 0, False)


@family
def losses(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32"):
        x = tensor_of(vt, 64, 5000, dtype=dtype).requires_grad_()
        F.cross_entropy(x, vt.zeros(64, dtype=vt.int64, device="cuda")).backward()


@family
def norms(vt: Any) -> None:
    F = vt.nn.functional
    for dtype in ("bfloat16", "float32"):
        x, w = tensor_of(vt, 64, 768, dtype=dtype).requires_grad_(), tensor_of(vt, 768, dtype=dtype)
        w.requires_grad_()
        F.layer_norm(x, (768,), w, w).sum().backward()
        F.rms_norm(x, (768,), w).sum().backward()


@family
def optimizers(vt: Any) -> None:
    p = tensor_of(vt, 64, 768, dtype="float32").requires_grad_()
    p.grad = tensor_of(vt, 64, 768, dtype="float32")
    vt.optim.AdamW([p], lr=1e-3, amsgrad=True).step()
    vt.optim.SGD([p], lr=1e-3, momentum=0.9, weight_decay=0.1).step()
    vt.optim.RMSprop([p], momentum=0.9, centered=True).step()
    vt.optim.Adagrad([p], fused=True).step()
    for name in ("Adadelta", "Adagrad", "Adamax", "ASGD", "Lion", "NAdam", "RAdam", "Rprop"):
        getattr(vt.optim, name)([p]).step()
    scaler = vt.amp.GradScaler("cuda")
    for name in ("AdamW", "SGD", "Adagrad"):
        scaler.scale(vt.ones((), device="cuda"))
        scaler.step(getattr(vt.optim, name)([p], fused=True))
        scaler.update()


@family
def sounds_and_pictures(vt: Any) -> None:
    from votive.ops.registry import F as ops

    F = vt.nn.functional
    for dtype in ("bfloat16", "float32", "float64"):
        x, a = tensor_of(vt, 2, 2, 20000, dtype=dtype), tensor_of(vt, 2, 3, dtype=dtype)
        long = tensor_of(vt, 2, 12, dtype=dtype)
        for c in (a, long):
            c.requires_grad_()
            ops._lfilter(x.detach().requires_grad_(), c, c, False).sum().backward()
        ops._delay_feedback(x, x, vt.ones(2, 2, 20000, dtype=vt.int64, device="cuda"), True)
        k = tensor_of(vt, 160, 41, dtype=dtype).requires_grad_()
        ops._polyphase(x[0].detach().requires_grad_(), k, 441, 20, 7257).sum().backward()
        picture = tensor_of(vt, 2, 64, 56, 56, dtype=dtype).requires_grad_()
        for mode in ("bilinear", "bicubic"):
            theta = tensor_of(vt, 2, 2, 3, dtype=dtype).requires_grad_()
            grid = F.affine_grid(theta, (2, 64, 56, 56), False)
            F.grid_sample(picture, grid, mode, "reflection", False).sum().backward()
        boxes, of = tensor_of(vt, 1000, 4, dtype=dtype), vt.zeros(1000, dtype=vt.int64, device="cuda")
        ops._survivors(boxes, of, 0.5)
        edges, by = of.view(100, 10), tensor_of(vt, 100, 7, 56, dtype=dtype)
        ops._region_argmax(picture.detach(), of[:100], edges, edges, edges, edges)
        ops._region_sums(picture, of[:100], by, by).sum().backward()
    F.interpolate(vt.zeros(2, 3, 60, 80, dtype=vt.uint8, device="cuda"), (20, 30), mode="bilinear")


@family
def recurrent(vt: Any) -> None:
    for mode, hidden, batch in (("LSTM", 96, 4), ("GRU", 40, 8), ("RNN", 320, 64)):
        for dtype in ("bfloat16", "float32"):
            kind = getattr(vt, dtype)
            net = getattr(vt.nn, mode)(16, hidden, bidirectional=mode == "GRU").to(device="cuda", dtype=kind)
            net(tensor_of(vt, 8, batch, 16, dtype=dtype))[0].sum().backward()
