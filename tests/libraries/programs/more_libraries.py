"""Further libraries: each trains, fits or explains something small, from the same numbers on both sides."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from common import array, fill, gradients, integers, main, numbers

warnings.simplefilter("ignore")
os.environ["TQDM_DISABLE"] = "1"


def _x(name: str, *shape: int) -> Any:
    return torch.from_numpy(numbers(name, *shape))


def _net() -> Any:
    return fill(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)))


def _accelerate() -> dict[str, Any]:
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    net = _net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.05)
    data = torch.utils.data.TensorDataset(_x("x", 16, 4), _x("y", 16, 2))
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    loader = torch.utils.data.DataLoader(data, batch_size=4)
    net, optimizer, loader, scheduler = accelerator.prepare(net, optimizer, loader, scheduler)
    losses = []
    for x, y in loader:
        with accelerator.accumulate(net):
            loss = torch.nn.functional.mse_loss(net(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        losses.append(float(accelerator.gather(loss)))
    with tempfile.TemporaryDirectory() as folder:
        accelerator.save_state(folder)
        before = array(accelerator.unwrap_model(net)[0].weight).copy()
        with torch.no_grad():
            accelerator.unwrap_model(net)[0].weight.zero_()
        accelerator.load_state(folder)
    after = array(accelerator.unwrap_model(net)[0].weight)
    return {
        "losses": np.array(losses),
        "weight": before,
        "again": after,
        "processes": np.array(accelerator.num_processes),
    }


def _without_mpi() -> None:
    """mpi4py may be installed where no MPI is; Lightning looks for it by importing."""
    import lightning.fabric.plugins.environments.mpi as environment

    environment._MPI4PY_AVAILABLE = False


def _lightning() -> dict[str, Any]:
    import lightning as L

    _without_mpi()

    class Fit(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = _net()
            self.seen: list[float] = []

        def training_step(self, batch: Any, index: int) -> Any:
            loss = torch.nn.functional.mse_loss(self.net(batch[0]), batch[1])
            self.log("loss", loss)
            self.seen.append(float(loss))
            return loss

        def validation_step(self, batch: Any, index: int) -> None:
            self.log("val", torch.nn.functional.l1_loss(self.net(batch[0]), batch[1]))

        def configure_optimizers(self) -> Any:
            optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
            return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)]

    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(_x("x", 16, 4), _x("y", 16, 2)), batch_size=4)
    model = Fit()
    with tempfile.TemporaryDirectory() as folder:
        trainer = L.Trainer(
            max_epochs=2,
            accelerator="cpu",
            devices=1,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=folder,
            gradient_clip_val=1.0,
        )
        trainer.fit(model, data, data)
        path = os.path.join(folder, "x.ckpt")
        trainer.save_checkpoint(path)
        again = Fit.load_from_checkpoint(path, weights_only=False)
        metrics = trainer.callback_metrics
    return {
        "seen": np.array(model.seen),
        "weight": array(model.net[0].weight),
        "again": array(again.net[2].weight),
        "val": array(metrics["val"]),
    }


def _fabric() -> dict[str, Any]:
    from lightning.fabric import Fabric

    _without_mpi()
    fabric = Fabric(accelerator="cpu", devices=1)
    net = _net()
    net, optimizer = fabric.setup(net, torch.optim.Adam(net.parameters(), lr=0.05))
    for i in range(3):
        optimizer.zero_grad()
        fabric.backward(net(_x(f"x{i}", 4, 4)).square().mean())
        fabric.clip_gradients(net, optimizer, max_norm=0.5)
        optimizer.step()
    return {"weight": array(net.module[0].weight)}


def _torchdiffeq() -> dict[str, Any]:
    from torchdiffeq import odeint, odeint_adjoint

    net = fill(torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)))

    class Field(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, t: Any, y: Any) -> Any:
            return self.net(y) - 0.1 * y

    t = torch.linspace(0, 1, 5)
    found = {}
    for method in ("dopri5", "rk4", "midpoint", "implicit_adams", "bosh3"):
        y = odeint(Field(), _x("y0", 3, 2), t, method=method, options={"step_size": 0.1} if method == "rk4" else None)
        found[method] = array(y)
    y = odeint_adjoint(Field(), _x("y0", 3, 2).requires_grad_(), t, method="dopri5")
    y.square().sum().backward()
    return {**found, **gradients(net)}


def _kornia() -> dict[str, Any]:
    import kornia as K

    x = torch.from_numpy(np.abs(numbers("image", 2, 3, 16, 16)) % 1).requires_grad_()
    found = {
        "gray": K.color.rgb_to_grayscale(x),
        "hsv": K.color.rgb_to_hsv(x),
        "lab": K.color.rgb_to_lab(x),
        "blur": K.filters.gaussian_blur2d(x, (3, 3), (1.5, 1.5)),
        "sobel": K.filters.sobel(x),
        "canny": K.filters.canny(x)[0],
        "median": K.filters.median_blur(x, (3, 3)),
        "rotate": K.geometry.rotate(x, torch.tensor([30.0, -20.0])),
        "resize": K.geometry.resize(x, (8, 12)),
        "warp": K.geometry.warp_perspective(
            x, torch.tensor([[[1.0, 0.1, 0], [0, 1, 0.2], [0.001, 0, 1]]] * 2), (10, 10)
        ),
        "ssim": K.metrics.ssim(x, x.flip(-1), 5),
        "dilate": K.morphology.dilation(x, torch.ones(3, 3)),
        "equalize": K.enhance.equalize(x.detach()),
        "jitter": K.enhance.adjust_saturation(x, 1.4),
        "harris": K.feature.harris_response(x),
        "quaternion": K.geometry.conversions.axis_angle_to_rotation_matrix(_x("axis", 3, 3)),
        "dice": K.losses.dice_loss(x, torch.from_numpy(integers("t", 3, 2, 16, 16))),
    }
    (found["blur"].sum() + found["rotate"].square().sum() + found["ssim"].sum()).backward()
    return {**{k: array(v) for k, v in found.items()}, "grad": array(x.grad)}


def _pyro() -> dict[str, Any]:
    import pyro
    import pyro.distributions as dist
    from pyro import poutine
    from pyro.infer import SVI, Trace_ELBO

    pyro.clear_param_store()
    data = _x("data", 20) * 0.5 + 1

    def model(data: Any) -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 10.0))
        with pyro.plate("data", len(data)):
            pyro.sample("obs", dist.Normal(mean, 1.0), obs=data)

    def guide(data: Any) -> None:
        pyro.sample("mean", dist.Delta(pyro.param("at", torch.tensor(0.3))))

    svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.1}), loss=Trace_ELBO())
    losses = [svi.step(data) for _ in range(10)]
    trace = poutine.trace(poutine.condition(model, {"mean": torch.tensor(0.7)})).get_trace(data)
    mixture = dist.MixtureSameFamily(dist.Categorical(torch.ones(3)), dist.Normal(torch.arange(3.0), 1.0))
    return {
        "losses": np.array(losses),
        "at": array(pyro.param("at")),
        "trace": array(trace.log_prob_sum()),
        "mixture": array(mixture.log_prob(data)),
        "mvn": array(dist.MultivariateNormal(torch.zeros(2), torch.eye(2) + 0.3).log_prob(_x("m", 4, 2))),
    }


def _gpytorch() -> dict[str, Any]:
    import gpytorch

    class Model(gpytorch.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=2.5))

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    x = torch.linspace(0, 1, 20).double()
    y = torch.sin(6 * x) + 0.1 * _x("noise", 20).double()
    likelihood = gpytorch.likelihoods.GaussianLikelihood().double()
    model = Model(x, y, likelihood).double()
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = -mll(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    likelihood.eval()
    with torch.no_grad():
        at = likelihood(model(torch.linspace(0, 1.2, 7).double()))
    return {"losses": np.array(losses), "mean": array(at.mean), "variance": array(at.variance)}


def _botorch() -> dict[str, Any]:
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    x = torch.from_numpy(np.random.default_rng(0).random((12, 2)))
    y = (x - 0.4).square().sum(1, keepdim=True)
    model = SingleTaskGP(x, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    value = LogExpectedImprovement(model, best_f=y.min(), maximize=False)
    at = torch.from_numpy(np.random.default_rng(1).random((5, 1, 2)))
    return {"mean": array(model.posterior(at).mean), "value": array(value(at))}


def _geometric() -> dict[str, Any]:
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, TransformerConv, global_mean_pool
    from torch_geometric.utils import add_self_loops, degree, softmax, to_dense_adj

    edges = torch.from_numpy(integers("edges", 6, 2, 14))
    data = Batch.from_data_list([Data(x=_x(f"g{i}", 6, 4), edge_index=edges) for i in range(2)])
    found = {}
    layers = {
        "gcn": GCNConv(4, 3),
        "gat": GATConv(4, 3, heads=2),
        "sage": SAGEConv(4, 3),
        "gin": GINConv(torch.nn.Linear(4, 3)),
        "transformer": TransformerConv(4, 3),
    }
    for name, layer in layers.items():
        y = fill(layer)(data.x, data.edge_index)
        pooled = global_mean_pool(y, data.batch)
        pooled.square().sum().backward()
        found[name] = array(pooled)
        found.update({f"{name}.{k}": v for k, v in gradients(layer).items()})
    found["degree"] = array(degree(edges[0], 6))
    found["dense"] = array(to_dense_adj(edges))
    found["loops"] = array(add_self_loops(edges, num_nodes=6)[0])
    found["softmax"] = array(softmax(_x("s", 14), edges[0], num_nodes=6))
    return found


def _opacus() -> dict[str, Any]:
    from opacus import GradSampleModule
    from opacus.accountants import RDPAccountant

    net = GradSampleModule(
        fill(torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.Flatten(), torch.nn.Linear(12, 2)))
    )
    net(_x("x", 5, 2, 6)).square().sum().backward()
    samples = {f"sample.{n}": array(p.grad_sample) for n, p in net.named_parameters()}
    accountant = RDPAccountant()
    for _ in range(10):
        accountant.step(noise_multiplier=1.1, sample_rate=0.05)
    return {**samples, "epsilon": np.array(accountant.get_epsilon(delta=1e-5))}


def _captum() -> dict[str, Any]:
    from captum.attr import (
        DeepLift,
        FeatureAblation,
        GuidedBackprop,
        InputXGradient,
        IntegratedGradients,
        LayerGradCam,
        Occlusion,
        Saliency,
    )

    net = fill(
        torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3))
    )
    x = _x("x", 2, 1, 8, 8)
    x.requires_grad_()
    return {
        "integrated": array(IntegratedGradients(net).attribute(x, target=1, n_steps=16)),
        "saliency": array(Saliency(net).attribute(x, target=1)),
        "deeplift": array(DeepLift(net).attribute(x, target=2)),
        "guided": array(GuidedBackprop(net).attribute(x, target=0)),
        "times": array(InputXGradient(net).attribute(x, target=0)),
        "ablation": array(FeatureAblation(net).attribute(x, target=0)),
        "occlusion": array(Occlusion(net).attribute(x, target=0, sliding_window_shapes=(1, 3, 3))),
        "cam": array(LayerGradCam(net, net[0]).attribute(x, target=1)),
    }


def _sentence_transformers() -> dict[str, Any]:
    from sentence_transformers import losses, util
    from transformers import BertConfig, BertModel

    config = BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    encoder = fill(BertModel(config)).eval()
    ids = torch.from_numpy(integers("ids", 50, 3, 6))
    embeddings = encoder(input_ids=ids).last_hidden_state.mean(1)

    class Given(torch.nn.Module):
        def forward(self, features: Any) -> Any:
            return {"sentence_embedding": features["e"]}

    loss = losses.MultipleNegativesRankingLoss(Given())([{"e": embeddings}, {"e": embeddings.flip(0)}], None)
    loss.backward()
    hits = util.semantic_search(embeddings.detach(), embeddings.detach(), top_k=2)
    return {
        "loss": array(loss),
        "similar": array(util.cos_sim(embeddings, embeddings)),
        "hits": np.array([[h["corpus_id"] for h in row] for row in hits]),
        **gradients(encoder.embeddings),
    }


def _x_transformers() -> dict[str, Any]:
    from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper

    net = TransformerWrapper(
        num_tokens=20,
        max_seq_len=16,
        attn_layers=Decoder(
            dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True, use_rmsnorm=True, ff_glu=True
        ),
    )
    model = AutoregressiveWrapper(fill(net))
    loss = model(torch.from_numpy(integers("ids", 20, 2, 10)))
    loss.backward()
    model.eval()
    made = model.generate(torch.from_numpy(integers("p", 20, 1, 3)), 6, temperature=0.0)
    return {"loss": array(loss), "made": array(made), **gradients(net)}


def _vit_pytorch() -> dict[str, Any]:
    from vit_pytorch import SimpleViT, ViT
    from vit_pytorch.cct import CCT

    found = {}
    for name, net in {
        "vit": ViT(image_size=16, patch_size=4, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32),
        "simple": SimpleViT(image_size=16, patch_size=4, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32),
        "cct": CCT(
            img_size=16, embedding_dim=16, n_conv_layers=1, num_layers=1, num_heads=2, mlp_ratio=1, num_classes=5
        ),
    }.items():
        y = fill(net).eval()(_x("image", 2, 3, 16, 16))
        y.square().sum().backward()
        found[name] = array(y)
        found.update({f"{name}.{k}": v for k, v in gradients(net).items()})
    return found


def _lion() -> dict[str, Any]:
    from lion_pytorch import Lion

    net = _net()
    for foreach in (False, True):
        optimizer = Lion(net.parameters(), lr=0.01, weight_decay=0.1, use_triton=False)
        for i in range(3):
            optimizer.zero_grad()
            net(_x(f"x{i}{foreach}", 4, 4)).square().mean().backward()
            optimizer.step()
    return {"weight": array(net[0].weight)}


def _timm_optimizers() -> dict[str, Any]:
    from timm.optim import create_optimizer_v2

    found = {}
    lists = ("adamw", "nadamw", "lion", "adan", "adopt", "sgdw")
    for name in (*lists, "lamb", "madgrad", "mars", "lars", "rmsproptf", "laprop"):
        for foreach in (False, True):
            net = _net()
            options = {"foreach": foreach} if name in lists else {}
            optimizer = create_optimizer_v2(net, opt=name, lr=0.01, weight_decay=0.05, **options)
            for i in range(3):
                optimizer.zero_grad()
                net(_x(f"x{i}", 4, 4)).square().mean().backward()
                optimizer.step()
            found[f"{name}.{foreach}"] = array(net[0].weight)
    return found


def _skorch() -> dict[str, Any]:
    from skorch import NeuralNetClassifier

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = _net()

        def forward(self, X: Any) -> Any:
            return self.net(X).softmax(-1)

    model = NeuralNetClassifier(
        Net, max_epochs=3, lr=0.1, train_split=None, verbose=0, iterator_train__shuffle=False, batch_size=8
    )
    x, y = numbers("x", 24, 4), integers("y", 2, 24)
    model.fit(x, y)
    return {
        "probabilities": model.predict_proba(x),
        "losses": np.array([row["train_loss"] for row in model.history]),
        "score": np.array(model.score(x, y)),
    }


def _stable_baselines() -> dict[str, Any]:
    import gymnasium as gym
    from stable_baselines3 import DQN, PPO

    found = {}
    for name, kind, options in (("ppo", PPO, {"n_steps": 32, "batch_size": 16, "n_epochs": 2}), ("dqn", DQN, {})):
        model = kind("MlpPolicy", gym.make("CartPole-v1"), seed=0, device="cpu", **options)
        fill(model.policy)
        observation = torch.from_numpy(numbers("o", 5, 4))
        if name == "ppo":
            values, log_prob, entropy = model.policy.evaluate_actions(observation, torch.zeros(5, dtype=torch.long))
            (values.sum() + log_prob.sum() + entropy.sum()).backward()
            found.update({"values": array(values), "log": array(log_prob), "entropy": array(entropy)})
            found.update(gradients(model.policy))
        else:
            found["q"] = array(model.q_net(observation))
        found[f"{name}.action"] = np.array(model.predict(numbers("o", 5, 4), deterministic=True)[0])
        model.learn(64)  # draws of its own: only that it runs
        with tempfile.TemporaryDirectory() as folder:
            model.save(os.path.join(folder, "m"))
            again = kind.load(os.path.join(folder, "m"), device="cpu")
        assert len(again.policy.state_dict()) == len(model.policy.state_dict())
    return found


def _einx() -> dict[str, Any]:
    import einx

    x = _x("x", 2, 3, 4).requires_grad_()
    y = einx.id("a b c -> (a c) b", x)
    z = einx.sum("a [b] c", x) + einx.mean("a [b] c", x)
    d = einx.dot("a b c, c d -> a b d", x, _x("w", 4, 5))
    (y.square().sum() + z.sum() + d.sum()).backward()
    return {"y": array(y), "z": array(z), "d": array(d), "grad": array(x.grad)}


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "accelerate": _accelerate,
    "lightning": _lightning,
    "fabric": _fabric,
    "torchdiffeq": _torchdiffeq,
    "kornia": _kornia,
    "pyro": _pyro,
    "gpytorch": _gpytorch,
    "botorch": _botorch,
    "torch_geometric": _geometric,
    "opacus": _opacus,
    "captum": _captum,
    "sentence_transformers": _sentence_transformers,
    "x_transformers": _x_transformers,
    "vit_pytorch": _vit_pytorch,
    "lion_pytorch": _lion,
    "timm_optimizers": _timm_optimizers,
    "skorch": _skorch,
    "stable_baselines3": _stable_baselines,
    "einx": _einx,
}

if __name__ == "__main__":
    main(CASES)
