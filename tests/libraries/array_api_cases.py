"""Functions of scikit-learn and SciPy on arrays of votive.np; a program, since SciPy reads its switch once.

`python -m tests.libraries.array_api_cases` prints a line for each: the library, what was called, and how it went.
"""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np

import votive

SKLEARN = """
StandardScaler().fit_transform(c(X))
MinMaxScaler().fit_transform(c(X))
MaxAbsScaler().fit_transform(c(X))
Normalizer().fit_transform(c(X))
Binarizer().fit_transform(c(X))
KernelCenterer().fit_transform(c(X @ X.T))
PolynomialFeatures(2).fit_transform(c(X))
LabelEncoder().fit_transform(c(y3))
abs(PCA(3, svd_solver='full').fit_transform(c(X)))
abs(PCA(3, svd_solver='covariance_eigh').fit(c(X)).transform(c(X)))
PCA(3, svd_solver='randomized', random_state=0, power_iteration_normalizer='QR').fit(c(X)).explained_variance_
Ridge(solver='svd').fit(c(X), c(yr)).predict(c(X))
RidgeClassifier(solver='svd').fit(c(X), c(y)).predict(c(X))
LinearDiscriminantAnalysis(solver='svd').fit(c(X), c(y)).predict(c(X))
abs(LinearDiscriminantAnalysis(solver='svd').fit(c(X), c(y3)).transform(c(X)))
GaussianNB().fit(c(X), c(y)).predict(c(X))
GaussianMixture(2, init_params='random_from_data', random_state=0).fit(c(X)).predict(c(X))
LogisticRegression(solver='lbfgs').fit(c(X), c(y)).predict(c(X))
train_test_split(c(X), c(y), random_state=0)
metrics.accuracy_score(c(y), c(yp))
metrics.zero_one_loss(c(y), c(yp))
metrics.f1_score(c(y), c(yp))
metrics.precision_score(c(y), c(yp))
metrics.recall_score(c(y), c(yp))
metrics.jaccard_score(c(y), c(yp))
metrics.hamming_loss(c(y), c(yp))
metrics.confusion_matrix(c(y), c(yp))
metrics.balanced_accuracy_score(c(y), c(yp))
metrics.cohen_kappa_score(c(y), c(yp))
metrics.matthews_corrcoef(c(y), c(yp))
metrics.roc_auc_score(c(y), c(X[:, 0]))
metrics.roc_curve(c(y), c(X[:, 0]))[:2]
metrics.precision_recall_curve(c(y), c(X[:, 0]))
metrics.average_precision_score(c(y), c(X[:, 0]))
metrics.log_loss(c(y), c(1 / (1 + np.exp(-X[:, 0]))))
metrics.brier_score_loss(c(y), c(1 / (1 + np.exp(-X[:, 0]))))
metrics.r2_score(c(yr), c(yr + 0.1))
metrics.mean_squared_error(c(yr), c(yr * 1.1))
metrics.root_mean_squared_error(c(yr), c(yr * 1.1))
metrics.mean_absolute_error(c(yr), c(yr * 1.1))
metrics.median_absolute_error(c(yr), c(yr * 1.1))
metrics.mean_absolute_percentage_error(c(yr), c(yr * 1.1))
metrics.mean_squared_log_error(c(abs(yr)), c(abs(yr) * 1.1))
metrics.max_error(c(yr), c(yr * 1.1))
metrics.mean_tweedie_deviance(c(abs(yr) + 1), c(abs(yr) + 1.1))
metrics.mean_pinball_loss(c(yr), c(yr * 1.1))
metrics.explained_variance_score(c(yr), c(yr * 1.1))
metrics.d2_tweedie_score(c(abs(yr) + 1), c(abs(yr) + 1.1))
pairwise.euclidean_distances(c(X))
pairwise.manhattan_distances(c(X))
pairwise.cosine_similarity(c(X))
pairwise.cosine_distances(c(X))
pairwise.rbf_kernel(c(X))
pairwise.laplacian_kernel(c(X))
pairwise.polynomial_kernel(c(X))
pairwise.sigmoid_kernel(c(X))
pairwise.additive_chi2_kernel(c(abs(X)))
pairwise.paired_euclidean_distances(c(X), c(X[::-1]))
pairwise.paired_cosine_distances(c(X), c(X[::-1]))
pairwise.linear_kernel(c(X))
metrics.pairwise_distances(c(X))
"""

SCIPY = """
special.logsumexp(c(z), axis=1)
special.softmax(c(z), axis=1)
special.log_softmax(c(z), axis=0)
special.betainc(c(x), c(y), c(x / 2))
special.multigammaln(c(x + 3), 2)
stats.skew(c(z))
stats.kurtosis(c(z))
stats.moment(c(z), 3)
stats.variation(c(x))
stats.kstat(c(w), 3)
stats.kstatvar(c(w))
stats.zscore(c(z))
stats.zmap(c(z), c(x))
stats.gzscore(c(x))
stats.sem(c(z))
stats.entropy(c(x))
list(stats.describe(c(w)))[2:]
stats.tmean(c(w), (-1, 1))
stats.tvar(c(w), (-1, 1))
stats.tmin(c(w), -1)
stats.tmax(c(w), 1)
stats.tstd(c(w), (-1, 1))
stats.tsem(c(w), (-1, 1))
list(stats.ttest_1samp(c(w), 0.0))
list(stats.ttest_ind(c(w), c(w[::-1] * 2 + 1)))
list(stats.ttest_rel(c(w), c(w ** 2)))
list(stats.pearsonr(c(w), c(w ** 2 + w)))
list(stats.skewtest(c(w)))
list(stats.kurtosistest(c(w)))
list(stats.normaltest(c(w)))
list(stats.jarque_bera(c(w)))
list(stats.chisquare(c(np.array([16.0, 18, 16, 14, 12, 12]))))
list(stats.power_divergence(c(np.array([16.0, 18, 16, 14, 12, 12])), lambda_=1.5))
list(stats.bartlett(c(w[:20]), c(w[20:])))
list(stats.levene(c(w[:20]), c(w[20:])))
list(stats.fligner(c(w[:20]), c(w[20:])))
list(stats.f_oneway(c(w[:20]), c(w[20:])))
list(stats.kruskal(c(w[:20]), c(w[20:])))
list(stats.mannwhitneyu(c(w[:20]), c(w[20:])))
list(stats.wilcoxon(c(w)))
list(stats.spearmanr(c(w), c(w ** 2 + w)))
stats.rankdata(c(w))
stats.iqr(c(w))
stats.median_abs_deviation(c(w))
stats.trim_mean(c(w), 0.1)
stats.circmean(c(w))
stats.circvar(c(w))
stats.circstd(c(w))
stats.directional_stats(c(z)).mean_direction
list(stats.combine_pvalues(c(np.array([0.1, 0.2, 0.3]))))
stats.false_discovery_control(c(np.array([0.1, 0.01, 0.3])))
stats.boxcox_llf(0.5, c(np.exp(w)))
stats.expectile(c(w))
stats.lmoment(c(w))
stats.quantile(c(w), c(np.array([0.2, 0.7])))
stats.differential_entropy(c(w))
list(stats.siegelslopes(c(w)))
list(stats.linregress(c(w), c(w ** 2)))
[stats.cramervonmises_2samp(c(w[:20]), c(w[20:])).statistic]
list(stats.sigmaclip(c(w)))
stats.Normal(mu=c(np.asarray(0.0)), sigma=c(np.asarray(1.0))).cdf(c(w))
integrate.trapezoid(c(w))
integrate.simpson(c(w))
integrate.cumulative_trapezoid(c(w))
integrate.cumulative_simpson(c(w))
integrate.cubature(lambda q: q[..., 0] ** 2, c(np.array([0.0])), c(np.array([1.0]))).estimate
integrate.tanhsinh(lambda q: q ** 2, c(np.asarray(0.0)), c(np.asarray(1.0))).integral
optimize.rosen(c(w[:5]))
optimize.rosen_der(c(w[:5]))
optimize.rosen_hess(c(w[:5]))
elementwise.find_root(lambda q: q ** 2 - 2, (c(np.asarray(0.0)), c(np.asarray(2.0)))).x
differentiate.derivative(lambda q: q ** 3, c(np.asarray(1.5))).df
fft.dct(c(w))
fft.fft(c(w))
fft.rfft2(c(x))
fft.irfft(c(c0))
fft.fftn(c(x))
fft.fftshift(c(w))
fft.hfft(c(c0))
fft.idstn(c(x))
fft.fht(c(w), 0.1, 0.5)
fft.fftfreq(5, xp=c(w).__array_namespace__())
signal.fftconvolve(c(w), c(w[:7]))
signal.convolve(c(w), c(w[:7]))
signal.correlate(c(w), c(w[:7]))
signal.oaconvolve(c(w), c(w[:7]))
signal.lfilter(c(np.array([1.0, 0.5])), c(np.array([1.0, 0.2])), c(w))
signal.filtfilt(c(np.array([1.0, 0.5])), c(np.array([1.0, 0.2])), c(w))
signal.sosfilt(c(signal.butter(4, 0.3, output='sos')), c(w))
signal.hilbert(c(w))
signal.detrend(c(w))
signal.windows.hann(9, xp=c(w).__array_namespace__())
signal.windows.kaiser(9, 3.0, xp=c(w).__array_namespace__())
signal.resample(c(w), 20)
signal.resample_poly(c(w), 2, 3)
signal.decimate(c(w), 2)
signal.savgol_filter(c(w), 5, 2)
signal.medfilt(c(w))
signal.wiener(c(w))
list(signal.welch(c(w)))
list(signal.periodogram(c(w)))
list(signal.spectrogram(c(w), nperseg=16))
list(signal.freqz(c(np.array([1.0, 0.5])), worN=16))
list(signal.tf2zpk(c(np.array([1.0, 0.5])), c(np.array([1.0, 0.2]))))
signal.zpk2sos(c(np.array([0.5])), c(np.array([0.2])), 1.0)
list(signal.bilinear(c(np.array([1.0, 0.5])), c(np.array([1.0, 0.2]))))
signal.chirp(c(np.linspace(0, 1, 9)), 1.0, 1.0, 3.0)
signal.sawtooth(c(w))
signal.gausspulse(c(w))
list(signal.vectorstrength(c(w), 3.0))
signal.czt(c(w))
vq.whiten(c(x))
list(vq.vq(c(x), c(x[:2])))
list(vq.kmeans2(c(x), c(x[:2].copy())))
hierarchy.linkage(c(x))
ndimage.gaussian_filter(c(x), 1.0)
ndimage.uniform_filter(c(x))
ndimage.zoom(c(x), 2)
ndimage.label(c(x > 0.5))[0]
spatial.transform.Rotation.from_quat(c(np.array([0.0, 0, 1, 1]))).as_matrix()
spatial.transform.Rotation.from_rotvec(c(np.array([0.0, 0.2, 1]))).apply(c(np.eye(3)))
constants.convert_temperature(c(w), 'C', 'K')
linalg.inv(c(A))
linalg.det(c(A))
linalg.solve(c(A), c(A[:, 0]))
linalg.svd(c(A))[1]
linalg.expm(c(A))
special.gammaln(c(x / 1.4))
special.erf(c(x / 1.4))
special.erfc(c(x / 1.4))
special.expit(c(x / 1.4))
special.logit(c(x / 1.4))
special.ndtr(c(x / 1.4))
special.log_ndtr(c(x / 1.4))
special.ndtri(c(x / 1.4))
special.i0(c(x / 1.4))
special.i0e(c(x / 1.4))
special.i1(c(x / 1.4))
special.i1e(c(x / 1.4))
special.entr(c(x / 1.4))
special.digamma(c(x / 1.4))
special.gamma(c(x / 1.4))
special.log1p(c(x / 1.4))
special.xlogy(c(x), c(y))
special.rel_entr(c(x), c(y))
special.kl_div(c(x), c(y))
special.betaln(c(x), c(y))
special.gammainc(c(x), c(y))
special.gammaincc(c(x), c(y))
special.xlog1py(c(x), c(y))
special.beta(c(x), c(y))
special.stdtr(c(x), c(y))
special.chdtr(c(x), c(y))
special.chdtrc(c(x), c(y))
stats.gmean(c(x))
stats.hmean(c(x))
stats.pmean(c(x), 2)
"""


_MODULES = (
    "constants differentiate fft integrate linalg ndimage optimize signal spatial special stats cluster.hierarchy "
    "cluster.vq optimize.elementwise"
)


def scope(library: str) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    out: dict[str, Any] = {"np": np}
    if library == "scikit-learn":
        from sklearn import (
            decomposition,
            discriminant_analysis,
            linear_model,
            metrics,
            mixture,
            model_selection,
            naive_bayes,
            preprocessing,
        )
        from sklearn.metrics import pairwise

        for module in (decomposition, discriminant_analysis, linear_model, mixture, naive_bayes, preprocessing):
            out |= vars(module)
        out |= {"metrics": metrics, "pairwise": pairwise, "train_test_split": model_selection.train_test_split}
        X = rng.standard_normal((60, 5))
        y = (X[:, 0] + 0.3 * rng.standard_normal(60) > 0).astype(np.int64)
        yp = np.concatenate([1 - y[:7], y[7:]])
        yr = X @ np.arange(5.0) + rng.standard_normal(60) * 0.1
        return out | {"X": X, "y": y, "yp": yp, "yr": yr, "y3": rng.integers(0, 3, 60)}

    for name in _MODULES.split():
        out[name.rpartition(".")[2]] = importlib.import_module(f"scipy.{name}")
    z = rng.standard_normal((4, 6))
    c0 = z[0] + 1j * rng.random(6)
    more = {
        "x": rng.random((4, 6)) + 0.1,
        "y": rng.random((4, 6)) + 0.2,
        "w": rng.standard_normal(40),
        "z": z,
        "c0": c0,
    }
    return out | more | {"A": rng.standard_normal((4, 4)) + 4 * np.eye(4)}


def flat(v: Any) -> list[Any]:
    return [q for u in v for q in flat(u)] if isinstance(v, (tuple, list)) else [v]


def outcome(text: str, names: dict[str, Any]) -> str:
    """How an expression went, against NumPy's arrays."""
    try:
        want = eval(text, {**names, "c": lambda a: a})
        got = eval(text, {**names, "c": lambda a: votive.np.asarray(np.array(a))})
    except Exception as problem:
        return f"fails: {type(problem).__name__}: {str(problem)[:120]}".replace("\n", " ")
    pairs = zip(flat(want), flat(got), strict=True)
    if not all(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-6, atol=1e-8) for a, b in pairs):
        return "differs"
    ours = any(isinstance(g, (votive.np.ndarray, float, int)) for g in flat(got))
    return "agrees" if ours else "agrees, as NumPy's arrays: the function has no array-API support"


def main() -> None:
    warnings.simplefilter("ignore")
    import sklearn

    names = scope("scikit-learn")
    with sklearn.config_context(array_api_dispatch=True):
        for text in SKLEARN.strip().splitlines():
            print("scikit-learn", text, outcome(text, names), sep="\t")
    names = scope("scipy")
    for text in SCIPY.strip().splitlines():
        print("scipy", text, outcome(text, names), sep="\t")


if __name__ == "__main__":
    sys.exit(main())
