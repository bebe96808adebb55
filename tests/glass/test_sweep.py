"""Patching sweeps: the heat map is what one patch at a time gives, with less computed."""

from __future__ import annotations

from typing import Any

import pytest

import votive
from votive import glass, nn
from votive.glass import values
from votive.glass.residual_stream import logits_of

from .decoders import ALL, decoder


def metric(out: Any) -> Any:
    logits = logits_of(out)
    return logits[:, -1, 3] - logits[:, -1, 4]


def texts(ids: Any) -> tuple[Any, Any]:
    corrupt = ids.clone()
    corrupt[:, 1] = 11
    return ids, corrupt


def one_at_a_time(model: Any, clean: Any, corrupt: Any, found: Any) -> Any:
    """Each site and position patched in a run of its own."""
    out = votive.zeros_like(found.per_sample)
    with votive.no_grad():
        with glass.capture(model, found.sites) as seen:
            model(clean)
        for i, site in enumerate(found.sites):
            value = values.first(seen[site])
            for j, p in enumerate(found.positions):
                edit = glass.Edit(first_call(site), value=value[:, [p]], positions=[p])
                with glass.patch(model, [edit]):
                    out[i, j] = metric(model(corrupt))
    return out


def first_call(site: str) -> str:
    """An address as a pattern: without a number, patterns mean all calls."""
    if "#" in site:
        return "^" + site
    path, colon, side = site.partition(":")
    return f"^{path}#0{colon}{side}"


def sites_of(name: str) -> list[str]:
    if name == "mine":
        return ["blocks.*", "blocks.*.look", "blocks.*.down:in"]
    inner = "h.*.attn" if name == "gpt2" else "layers.*.self_attn"
    return ["h.*" if name == "gpt2" else "layers.*", inner]


@pytest.mark.parametrize(("name", "batch"), [*((n, b) for n in ALL for b in (1, 32)), ("llama", 7), ("mine", 3)])
def test_a_sweep_is_what_one_patch_at_a_time_gives(name: str, batch: int) -> None:
    model, ids = decoder(name)
    for samples in (1, 2):
        clean, corrupt = texts(ids[:samples])
        for sites in sites_of(name):
            found = glass.sweep(model, clean, corrupt, metric=metric, sites=sites, batch=batch, positions=None)
            wanted = one_at_a_time(model, clean, corrupt, found)
            if batch == 1:
                assert votive.equal(found.per_sample, wanted)
            else:
                assert votive.allclose(found.per_sample, wanted, atol=1e-5)
            assert votive.allclose(found.values, wanted.mean(-1), atol=1e-5)
            # The position that differs matters, and not only there.
            assert float((found.values - found.corrupt.mean()).abs().max()) > 1e-5


def test_the_first_and_the_last_patch_bring_back_the_clean_run() -> None:
    model, ids = decoder("llama")
    clean, corrupt = texts(ids)
    found = glass.sweep(model, clean, corrupt, metric=metric)
    with votive.no_grad():
        assert votive.equal(found.clean, metric(model(clean)))
        assert votive.equal(found.corrupt, metric(model(corrupt)))
    assert votive.allclose(found.per_sample[1, -1], found.clean, atol=1e-6)
    assert votive.allclose(found.recovered[1, -1], votive.tensor(1.0), atol=1e-4)
    # Before the changed token both runs agree, so that a patch does nothing.
    assert votive.equal(found.per_sample[:, 0], found.corrupt.expand(2, 2))
    assert votive.allclose(found.recovered[:, 0], votive.zeros(2), atol=1e-4)


class Counted(nn.Module):
    """Counts its calls and the rows it sees."""

    def __init__(self, inner: Any, log: list[tuple[str, int]], name: str) -> None:
        super().__init__()
        self.inner, self.log, self.name = inner, log, name

    def forward(self, x: Any) -> Any:
        self.log.append((self.name, x.shape[0]))
        return self.inner(x)


def test_layers_before_a_site_are_not_run_again_and_positions_run_together() -> None:
    model, ids = decoder("mine")
    log: list[tuple[str, int]] = []
    votive.manual_seed(0)
    blocks = [Counted(model.blocks[i % 2], log, str(i)) for i in range(4)]
    model.blocks = nn.Sequential(*blocks)
    clean, corrupt = texts(ids[:1])
    found = glass.sweep(model, clean, corrupt, metric=metric, sites="blocks.*", batch=2)
    assert found.sites == [f"blocks.{i}" for i in range(4)]
    # Two plain runs; then of 4 differing positions 2 at a time: each block for the sites before it.
    repeated = [name for name, rows in log if rows == 2]
    # The first run with two copies also looks which results grow with the batch.
    assert [repeated.count(str(i)) for i in range(4)] == [2, 4, 6, 8]
    assert [(n, r) for n, r in log if r == 1] == [(str(i), 1) for i in range(4)] * 2
    assert found.runs == 2 + 4 * 2
    assert votive.allclose(found.per_sample, one_at_a_time(model, clean, corrupt, found), atol=1e-5)


class Twice(nn.Module):
    """Calls one block twice and a part of it in both: addresses have numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.block = nn.Sequential(nn.Linear(6, 6), nn.Tanh())
        self.mix = nn.Linear(6, 6)
        self.head = nn.Linear(6, 20)
        self.register_buffer("table", votive.randn(2, 6))

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        x = self.block(x) + x.cumsum(1)
        x = self.block(self.mix(x)) + x
        return self.head(x)


def test_later_calls_of_a_skipped_module_keep_their_numbers() -> None:
    votive.manual_seed(0)
    model = Twice()
    clean, corrupt = votive.tensor([[1, 2, 3], [4, 5, 6]]), votive.tensor([[7, 2, 3], [4, 8, 6]])
    found = glass.sweep(model, clean, corrupt, metric=metric, sites=["block", "block.0"])
    assert sorted(found.sites) == ["block", "block#1", "block.0", "block.0#1"]
    assert votive.allclose(found.per_sample, one_at_a_time(model, clean, corrupt, found), atol=1e-6)


class WithTable(nn.Module):
    """A module whose result holds a table as long as the batch, which does not grow with it."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.rows = Rows()
        self.layers = nn.ModuleList([nn.Linear(6, 6), nn.Linear(6, 6)])
        self.head = nn.Linear(6, 20)

    def forward(self, ids: Any) -> Any:
        x = self.embed(ids)
        table = self.rows(x)["table"]
        for layer in self.layers:
            x = x + layer(x).cumsum(1) * table.sum()
        return self.head(x)


class Rows(nn.Module):
    def forward(self, x: Any) -> dict[str, Any]:
        return {"table": votive.arange(1.0, 3.0), "x": x}


def test_tables_as_long_as_the_batch_do_not_grow_with_it() -> None:
    votive.manual_seed(0)
    model = WithTable()
    clean, corrupt = votive.tensor([[1, 2, 3], [4, 5, 6]]), votive.tensor([[7, 2, 3], [4, 8, 6]])
    found = glass.sweep(model, clean, corrupt, metric=metric, sites="layers.*")
    assert votive.allclose(found.per_sample, one_at_a_time(model, clean, corrupt, found), atol=1e-6)


def test_named_inputs_masks_and_chosen_positions() -> None:
    model, ids = decoder("qwen3")
    clean, corrupt = texts(ids)
    mask = votive.tensor([[1, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    named = [{"input_ids": i, "attention_mask": mask} for i in (clean, corrupt)]
    found = glass.sweep(model, *named, metric=metric, positions=[-1, 1])
    assert found.positions == [4, 1]
    out = votive.zeros_like(found.per_sample)
    with votive.no_grad(), glass.capture(model, "layers.*") as seen:
        model(**named[0])
    for i, site in enumerate(found.sites):
        for j, p in enumerate(found.positions):
            edit = glass.Edit(site, value=seen[site][:, [p]], positions=[p])
            with votive.no_grad(), glass.patch(model, [edit]):
                out[i, j] = metric(model(**named[1]))
    assert votive.allclose(found.per_sample, out, atol=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_the_estimate_is_the_slope_towards_the_clean_value(name: str) -> None:
    model, ids = decoder(name)
    model.double()
    clean, corrupt = texts(ids)
    sites = sites_of(name)[1]
    found = glass.sweep(model, clean, corrupt, metric=metric, sites=sites, estimate=True)
    # A thousandth of the way, there and back, is what the gradient tells.
    with votive.no_grad(), glass.capture(model, sites) as good:
        model(clean)
    with votive.no_grad(), glass.capture(model, sites) as bad:
        model(corrupt)
    largest = 0.0
    for i, site in enumerate(found.sites):
        for j, p in enumerate(found.positions):
            a, b = values.first(bad[site]), values.first(good[site])
            moved = []
            for share in (1e-3, -1e-3):
                value = a + share * (b - a)
                edit = glass.Edit(site, value=value[:, [p]], positions=[p])
                with votive.no_grad(), glass.patch(model, [edit]):
                    moved.append(float(metric(model(corrupt)).mean()))
            slope = (moved[0] - moved[1]) / 2e-3
            guess = float(found.estimate[i, j] - found.corrupt.mean())
            assert guess == pytest.approx(slope, rel=1e-2, abs=1e-3)
            largest = max(largest, abs(slope))
    assert largest > 1e-2
    assert -1.0 <= found.correlation <= 1.0


def test_the_estimate_is_exact_where_the_metric_is_linear() -> None:
    class Straight(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(9, 4)
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

        def forward(self, ids: Any) -> Any:
            x = self.embed(ids)
            for layer in self.layers:
                x = layer(x.cumsum(1))
            return x

    votive.manual_seed(0)
    model = Straight()
    for p in model.parameters():
        p.requires_grad_(False)  # a frozen model has gradients at its sites too
    clean, corrupt = votive.tensor([[1, 2, 3]]), votive.tensor([[4, 5, 6]])
    found = glass.sweep(model, clean, corrupt, metric=lambda y: y[:, -1, 0], sites="layers.*", estimate=True)
    assert votive.allclose(found.estimate, found.values, atol=1e-5)
    assert found.correlation == pytest.approx(1.0)
    with pytest.raises(ValueError, match="estimate=True"):
        _ = glass.sweep(model, clean, corrupt, metric=lambda y: y[:, -1, 0], sites="layers.*").correlation


def test_what_cannot_be_compared_is_refused() -> None:
    model, ids = decoder("gpt2")
    clean, corrupt = texts(ids)
    model.train()
    with pytest.raises(RuntimeError, match=r"model\.eval"):
        glass.sweep(model, clean, corrupt, metric=metric, sites="h.*")
    model.eval()
    with pytest.raises(ValueError, match="same shapes"):
        glass.sweep(model, clean[:, :4], corrupt, metric=metric, sites="h.*")
    with pytest.raises(ValueError, match="one number for each"):
        glass.sweep(model, clean, corrupt, metric=lambda out: out.logits.mean(), sites="h.*")
    with pytest.raises(glass.NoMatch, match=r"layers\.\*"):
        glass.sweep(model, clean, corrupt, metric=metric)
    with pytest.raises(IndexError, match="positions"):
        glass.sweep(model, clean, corrupt, metric=metric, sites="h.*", positions=9)
    cached = {"input_ids": clean, "past_key_values": nn.DynamicCache()}
    with pytest.raises(ValueError, match="cache"):
        glass.sweep(model, cached, cached, metric=metric, sites="h.*")
    assert not any(m._forward_hooks for m in model.modules())


def test_a_sweep_tells_its_numbers() -> None:
    model, ids = decoder("llama")
    found = glass.sweep(model, *texts(ids), metric=metric, estimate=True)
    result = found.to_dict()
    assert result["values"] == found.values.tolist()
    assert result["estimate"] == found.estimate.tolist()
    assert result["sites"] == ["model.layers.0", "model.layers.1"]


def test_sites_have_positions_in_the_dimension_that_is_theirs() -> None:
    model, ids = decoder("qwen3_moe")
    clean, corrupt = texts(ids)
    site = "layers.0.self_attn.q_norm"
    found = glass.sweep(model, clean, corrupt, metric=metric, sites=site)
    assert found.positions == [0, 1, 2, 3, 4]
    assert votive.allclose(found.per_sample, one_at_a_time(model, clean, corrupt, found), atol=1e-5)
    with pytest.raises(ValueError, match="no dimensions are known"):
        glass.sweep(model, clean, corrupt, metric=metric, sites="layers.0.mlp.gate")


def test_other_patches_hold_during_a_sweep_and_are_made_once() -> None:
    model, ids = decoder("llama")
    clean, corrupt = texts(ids)
    others = [glass.Edit("layers.0", "scale", 2.0), glass.Edit("layers.1.mlp", "scale", 0.5)]
    plain = glass.sweep(model, clean, corrupt, metric=metric, batch=1)
    with glass.patch(model, others):
        found = glass.sweep(model, clean, corrupt, metric=metric, batch=1)
        wanted = one_at_a_time(model, clean, corrupt, found)
    assert votive.allclose(found.per_sample[1], wanted[1], atol=1e-6)
    assert not votive.allclose(found.per_sample, plain.per_sample, atol=1e-3)


@pytest.mark.parametrize("dtype", [votive.bfloat16, votive.float64])
def test_other_precisions_are_swept(dtype: Any) -> None:
    model, ids = decoder("qwen3")
    model.to(dtype)
    clean, corrupt = texts(ids)
    found = glass.sweep(model, clean, corrupt, metric=metric, batch=1, estimate=True)
    assert votive.equal(found.per_sample, one_at_a_time(model, clean, corrupt, found))
