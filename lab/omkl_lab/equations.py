"""docs/equations.md: where each equation of the paper and of GraphMKL is computed, read off the source itself.

A line that computes an equation ends in its number, `# (15)` in Python and `// (15)` in C++. GraphMKL's equations,
(G1), (G2), ..., are those of docs/graph_mkl.md.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PYTHON = (
    "src/omkl/kernels.py",
    "src/omkl/features.py",
    "src/omkl/graph.py",
    "src/omkl/losses.py",
    "src/omkl/algorithms/**/*.py",
    "lab/omkl_lab/reproduce/theory/*.py",
)
CPP = ("src/omkl/engine/**/*.hpp",)


class Equation(NamedTuple):
    label: str  # in the LaTeX source
    what: str
    formula: str


EQUATIONS = {
    "z": Equation(
        "without a number, after eq:24",
        "features z of x from D spectral draws psi_1, ..., psi_D of kernel i",
        "z_i(x) = [sin(psi_1 . x), ..., sin(psi_D . x), cos(psi_1 . x), ..., cos(psi_D . x)] / sqrt(D)",
    ),
    "4": Equation("eq:26", "prediction of kernel i", "f_i(x) = theta_i . z_i(x)"),
    "5": Equation("eq:4", "regularised loss of kernel i", "L_i = C(f_i(x), y) + lambda |theta_i|^2"),
    "6": Equation("eq:27", "combination of the kernels that are evaluated", "f(x) = sum_i w_i f_i(x) / sum_i w_i"),
    "7": Equation("eq:1", "dissimilarity of two kernels", "Delta(i, j) = integral of |kappa_i - kappa_j|^2"),
    "11": Equation(
        "eq:28",
        "threshold gamma_i that leaves node i exactly M out-neighbours",
        "(i, j) is an edge when Delta(i, j) <= gamma_i",
    ),
    "12": Equation("eq:2", "distribution of the node I_t", "p_i = (1 - xi) u_i / U + xi [i in D] / |D|"),
    "13": Equation(
        "eq:3", "prediction of SFG-MKL", "f(x) = sum of w_i f_i(x) / sum of w_i, i over the out-neighbours of I_t"
    ),
    "14": Equation("eq:5", "importance-weighted loss of kernel i", "l_i = L_i / q_i where i was evaluated, else 0"),
    "15": Equation("eq:6", "probability that kernel i is evaluated", "q_i = sum of p_j, j over the in-neighbours of i"),
    "16": Equation("eq:14", "importance-weighted loss of node i", "l^_i = C(f(x), y) / p_i where i = I_t, else 0"),
    "17": Equation("eq:7", "step of theta", "theta_i <- theta_i - eta grad l_i"),
    "18a": Equation("eq:8a", "weight of kernel i", "w_i <- w_i exp(-eta l_i)"),
    "18b": Equation("eq:8b", "weight of node i", "u_i <- u_i exp(-eta l^_i)"),
    "19": Equation("eq:10", "best function in hindsight", "f* = the best f_i*, f_i* = argmin of sum_t L(f(x_t))"),
    "20": Equation("eq:11", "stochastic regret", "sum_t E_t[L(f(x_t))] - sum_t L(f*(x_t))"),
    "21": Equation("eq:12", "bound of Theorem 3", "of the regret of SFG-MKL, from epsilon, C, L, 1/q and 1/q_bar"),
    "22": Equation("eq:15", "dominating set of the refined graph", "D' = {i : u_i / U >= (beta - xi / N) / (1 - xi)}"),
    "23": Equation(
        "eq:16", "the node of the dominating set nearest to kernel i", "d_i = argmin of Delta(i, j), j over D'"
    ),
    "24": Equation(
        "eq:17", "distribution of the node I_t on the refined graph", "p_i = (1 - xi) u_i / U + xi [i in D'] / |D'|"
    ),
    "25": Equation("eq:19", "prediction of SFG-MKL-R", "as (13), on the refined graph"),
    "26": Equation("eq:18", "bound of Theorem 4", "of the regret of SFG-MKL-R, from epsilon, C, L and beta"),
}

GRAPH_MKL = {
    "G1": Equation("scaling", "scaled inputs", "x~ = clip((x - m) s, -c, c) / sqrt(d), 0 where x is missing"),
    "G2": Equation(
        "scaling", "mean and scale of the inputs", "m = mean, s = 1 / deviation of the first rows, 0 where constant"
    ),
    "G3": Equation(
        "scaling", "standardised target", "y~ = (y - b) / u, with b the mean and u the deviation of the first targets"
    ),
    "G4": Equation("scaling", "scale of an input that was constant", "s = 1 / |x - m| at its first change"),
    "G5": Equation("experts", "features of the linear expert", "z = (1, x~)"),
    "G6": Equation("experts", "features with squares", "z = (1, x~, (sqrt(d) x~^2 - 1 / sqrt(d)) / 1.5)"),
    "G7": Equation("experts", "mean that an expert predicts", "mu = b + u theta z"),
    "G8": Equation(
        "experts",
        "ridge of every least squares",
        "lambda_i = lambda / max(1, l_i^2); for labels min(1, 10 / d) and 1 / d on the inputs",
    ),
    "G9": Equation(
        "experts", "Cholesky factor and leverage", "R = I / sqrt(lambda) at first, phi = R z, q = |phi|^2 = z' P z"
    ),
    "G10": Equation(
        "experts",
        "range of the linear expert",
        "mu clipped to the range of the last targets and half of it on either side",
    ),
    "G11": Equation("experts", "weights of the rows in the memory", "k_j = exp(-|x~ - x~_j|^2 / (2 h^2)) / sum"),
    "G12": Equation("experts", "mean and leverage of a memory expert", "mu = sum_j k_j y_j, q = sum_j k_j^2"),
    "G13": Equation("experts", "variance of an expert's prediction", "v = (sigma^2 (1 + q) + 1e-12) u^2"),
    "G14": Equation("experts", "label probabilities of an expert", "p = softmax(mu / v)"),
    "G15": Equation("learning", "gradient step", "theta <- theta + min(1, w a) (y~ - theta z) z'"),
    "G16": Equation("learning", "least squares step", "theta <- theta + w (y~ - theta z) (P z)' / (1 + w q)"),
    "G17": Equation("learning", "how much a row counts for P", "c = min(w, 1 / l - 1 / q)"),
    "G18": Equation(
        "learning", "update of the Cholesky factor", "R <- T R with T' T = I - c phi phi' / (1 + c q), where c > 0"
    ),
    "G19": Equation(
        "learning",
        "factor of a diagonal covariance",
        "P_kk <- P_kk (1 - c phi_k^2 / (1 + c q)), with more than 1024 inputs",
    ),
    "G20": Equation("learning", "its ridge", "lambda_inputs <- max(lambda_inputs, 0.3)"),
    "G21": Equation(
        "learning",
        "logistic step",
        "(G16) to (G18) with gap (e_y - p) / kappa and weight kappa w, kappa = max(p (1 - p), 0.05)",
    ),
    "G22": Equation("learning", "rate of the noise", "a = max(1 - memory, 1 / (n + 1))"),
    "G23": Equation("learning", "noise of numbers", "sigma^2 <- (1 - a) sigma^2 + a ((y - mu) / u)^2 / (1 + q)"),
    "G24": Equation(
        "learning", "temperature of labels", "sigma^2 <- sigma^2 exp(-a clip((mu_y - p mu) / v, -2, 2)), in [0.01, 100]"
    ),
    "G25": Equation("mixture", "weights of the experts", "w_e = exp(L_e) / sum exp(L)"),
    "G26": Equation(
        "mixture", "prediction of the mixture", "m = sum w_e mu_e, s^2 = sum w_e (v_e + (mu_e - m)^2); p = sum w_e p_e"
    ),
    "G27": Equation(
        "mixture",
        "log-likelihood of a target",
        "l_e = -log(v) / 2 - 5/2 log(1 + (y - mu)^2 / (4 v)); l_e = log max(p_y, 1e-12)",
    ),
    "G28": Equation("mixture", "evidence", "L_e <- (1 - discount) (L_e + l_e - log sum_k w_k exp(l_k))"),
    "G29": Equation("mixture", "differences from the mixture", "z_e = clip((mu_e - m) / s, -3, 3)"),
    "G30": Equation("mixture", "prediction corrected by stacking", "y^ = m + s clip(theta z, -3, 3)"),
    "G31": Equation("mixture", "target of the stacking", "clip((y - m) / s, -3, 3)"),
    "G32": Equation(
        "selection", "which experts are evaluated", "all while age < warm-up; then the best active - 1 and an explorer"
    ),
    "G33": Equation("selection", "rank of the experts", "by evidence, every 20 rounds"),
    "G34": Equation("selection", "explorer", "uniform among the others that are no neighbours of a leader"),
    "G35": Equation("change", "capped error", "e = min((y - y^)^2, 20 max(slow, 1e-12 u^2)) after 32 rounds"),
    "G36": Equation(
        "change", "fast and slow mean of the error", "mean <- mean + max(1 / T, 1 / n) (e - mean), T = 50 and 500"
    ),
    "G37": Equation("change", "alarm", "n > 200 and fast > 2 max(slow, 1e-12 u^2)"),
    "G38": Equation("change", "weights in a trial", "W <- 0.98 W + sum of w_e over the set"),
    "G39": Equation("change", "winner of a trial", "the challenger where its W is greater, after 500 rounds"),
    "G40": Equation("intervals", "reported standard deviation", "s^ = S^ s / b, b^2 = sum_e w_e v_e / (1 + q_e)"),
    "G41": Equation("intervals", "error as one of a normal distribution", "z(x), linear between the points (h, h_0)"),
    "G42": Equation("intervals", "evidence for another scale", "G <- max(0, G - log r + z^2 / 2 (1 - 1 / r^2))"),
    "G43": Equation("intervals", "current scale", "S^ = S^(1 - w) S_r^w, w = (e^G - 1) / (e^G - 1 + c)"),
    "G44": Equation("intervals", "half widths", "h <- h exp(g ([x > h] - (1 - coverage))), in order, g = 2 / n"),
    "G45": Equation("intervals", "scale of the errors", "S <- S + 2 / n (1.2533 |y - y^| b / s - S), n <= 2000"),
    "G46": Equation("intervals", "another scale", "the mean since G was 0, where G > log(1.5 n)"),
    "G47": Equation("intervals", "half width of any coverage", "linear in log h between the tracked levels"),
    "G48": Equation("growth", "diagonal of a covariance", "R_kk <- sqrt(sum_j R_jk^2), beyond 1024 inputs"),
    "G49": Equation(
        "growth",
        "least squares without some features",
        "theta <- theta - theta_F S^-1 Q' R, R <- R - Q Q' R, R_F = Q S",
    ),
    "G50": Equation("recovery", "unit of a target that was constant", "u = |y - b| at its first change"),
    "G51": Equation("recovery", "values of a block", "v <- clip(v, m - 40 / s, m + 40 / s); their mean and deviation"),
    "G52": Equation(
        "recovery", "misfit of the scaling", "sigma s < 1 / 20 or sigma s > 20 or |mean - m| s > 20 in a block"
    ),
    "G53": Equation("repeated rows", "key of a row", "sum_k mix(bits(x_k) + k 9e3779b97f4a7c15) / 2, rounded down"),
    "G54": Equation("repeated rows", "probability that a row has come before", "pi = (r + 1) / (n + 2)"),
    "G55": Equation(
        "repeated rows",
        "evidence that rows are shown again",
        "H <- clip(0.98 H + log((1 + pi) / (2 pi)), 0, 8) if the row is in the memory, else with -log 2",
    ),
    "G56": Equation(
        "repeated rows", "what a row in the memory is", "copy: delta = 1, pi < 1/2; again: delta > 8, H > 4; else new"
    ),
    "G57": Equation("weights", "weight relative to those of other rows", "v = w M_1 / M_2, running means of w and w^2"),
    "G58": Equation("sparse inputs", "sparse inputs, scaled", "clip(x s, -30, 30), s = 1 / root mean square"),
    "G59": Equation("sparse inputs", "scale of a sparse input that was 0", "s = 1 / |x| at its first value"),
    "G60": Equation("sparse inputs", "variance of a coefficient at the start", "P_kk = 1, without covariances"),
    "G61": Equation("stacking-of-labels", "differences of log-probabilities", "Z_ek = clip(log p_ek - log p_k, -3, 3)"),
    "G62": Equation("stacking-of-labels", "labels corrected by stacking", "p^ = softmax(log p + theta Z)"),
    "G63": Equation(
        "stacking-of-labels", "features of a step of the stacking of labels", "z_e = Z_ey - sum_k p^_k Z_ek"
    ),
    "G64": Equation("large-experts", "from when on a large expert counts", "after 16 rounds"),
    "G65": Equation("archive", "mean losses", "l <- l + max(1 / 500, 1 / n) ((y - mu)^2 - l); (1 - p_y)^2 for labels"),
    "G66": Equation("archive", "whether more wide features are useful", "l_1 <= 0.98 l_2 and l_1 <= 2 l_prediction"),
    "G67": Equation("trees", "thresholds of bins", "halfway between values, at quantiles where these are many"),
    "G68": Equation("trees", "bin of a value", "the number of thresholds that it is not below"),
    "G69": Equation("trees", "hash of a place in a tree", "mix(mix(r kappa) + a kappa)"),
    "G70": Equation("trees", "inputs of a tree", "F = min(U, max(32, min(64, ceil(U / 2))))"),
    "G71": Equation("trees", "projections of residuals", "a_is = sum_k +-g_ik"),
    "G72": Equation(
        "trees", "residuals and weights as whole numbers", "q = floor(Q a / max|a| + delta), h = floor(16 w / mean)"
    ),
    "G73": Equation("trees", "gain of a split", "G_L^2 / (H_L + 16) + G_R^2 / (H_R + 16) - G^2 / (H + 16)"),
    "G74": Equation("trees", "least weight of a side", "16 min(10, max(2, floor(n / 10)))"),
    "G75": Equation("trees", "path and prediction", "a <- 2 a + 1 + [x >= threshold], mu = base + sum of leaf values"),
    "G76": Equation("trees", "when a fit begins, and on what", "N - N_0 >= min(g N_0, C / 2), n = min(N, 3 C / 4)"),
    "G77": Equation("trees", "units of work after a row", "ceil(10 (d + T) / n)"),
    "G78": Equation("trees", "base", "mean target, or log of the labels' shares"),
    "G79": Equation("trees", "residuals and curvatures", "g = w (y - F), w; w (Y - p), w p (1 - p) for labels"),
    "G80": Equation("trees", "value of a leaf", "0.12 sum g / (sum of curvatures + ridge)"),
    "G81": Equation("trees", "what is fitted", "F <- F + value of the row's leaf"),
    "G82": Equation(
        "trees", "a leaf after one more row", "G <- G + w (y - f), H <- H + w, value = 0.12 G / (H + ridge)"
    ),
    "G83": Equation("wide-least-squares", "features", "z = (sin V'x~, cos V'x~) / sqrt(D), of the first D frequencies"),
    "G84": Equation("wide-least-squares", "sum of products", "G = sum w z z'"),
    "G85": Equation("wide-least-squares", "other sums", "B = sum w y~ z', s = sum w z, t = sum w y~, W = sum w"),
    "G86": Equation("wide-least-squares", "when they are solved", "n >= 1.15 n at the last solution"),
    "G87": Equation("wide-least-squares", "normal equations", "(G + lambda W / n I) theta' = B' - s t' / W"),
    "G88": Equation("wide-least-squares", "factor by blocks", "U'U = A: U_pq = U_pp'^-1 (A_pq - sum_r U_rp' U_rq)"),
    "G89": Equation("wide-least-squares", "substitutions", "U' v = B' - s t' / W, U theta' = v"),
    "G90": Equation("wide-least-squares", "prediction", "mu = b + u (t / W + theta z)"),
    "G91": Equation("wide-least-squares", "growth", "D doubles when useful and N >= 8 D"),
}


RELATED = {  # of docs/related.md; the label is the section there
    "F1": Equation(
        "OMKL-GF",
        "distribution from which node j draws its kernels",
        "p_ij = (1 - xi^j) w_i / W + xi^j / N",
    ),
    "F2": Equation("OMKL-GF", "probability that node j is linked to kernel i", "1 - (1 - p_ij)^M"),
    "F3": Equation("OMKL-GF", "distribution of the node", "(1 - xi) u_j / U + xi / J, u_j = sum of w_i, i linked to j"),
    "F4": Equation(
        "OMKL-GF",
        "probability that kernel i is evaluated",
        "q_i = sum_j (probability of node j) (1 - (1 - p_ij)^M)",
    ),
    "A1": Equation("AdaRaker", "combination of the levels", "f(x) = sum_j h_j f_j(x) / sum_j h_j"),
    "A2": Equation("AdaRaker", "step of a level", "eta_j = min(1/2, c / sqrt(|I_j|)), |I_j| = |I_0| 2^j"),
    "A3": Equation("AdaRaker", "weight of a level", "h_j <- h_j exp(-eta_j (C(f_j(x), y) - C(f(x), y)))"),
    "A4": Equation("AdaRaker", "beginning of an interval", "h_j <- eta_j; theta_j <- 0 and w_j <- 1 unless `warm`"),
    "V1": Equation(
        "VAW2",
        "matrix and vector of a kernel's forecaster",
        "A_i = lambda I + sum_(s <= t) z_i z_i', b_i = sum_(s < t) y z_i",
    ),
    "V2": Equation("VAW2", "prediction of a kernel", "v_i = b_i' A_i^-1 z_i = theta_i' z_i / (1 + |R_i z_i|^2)"),
    "V3": Equation(
        "VAW2",
        "matrix and vector of the forecaster over the kernels",
        "B = mu I + sum_(s <= t) v v', c = sum_(s < t) y v",
    ),
    "V4": Equation("VAW2", "prediction", "f(x) = c' B^-1 v"),
    "N1": Equation("NOGD", "prediction while rows are stored", "f(x) = sum_s beta_s kappa(x_s, x)"),
    "N2": Equation("NOGD", "a row is stored", "beta_t = -eta C'(f(x), y)"),
    "N3": Equation("NOGD", "projection on the span of the eigenvectors", "beta <- V V' beta"),
    "N4": Equation("NOGD", "prediction with features", "f(x) = theta . z(x) = beta . k(x), z(x) = D^(-1/2) V' k(x)"),
    "N5": Equation(
        "NOGD",
        "step with features",
        "theta <- theta - eta C'(f(x), y) z(x), hence beta moves along V D^-1 V' k(x)",
    ),
    "K1": Equation("KRLS-T", "forgetting, back to the prior", "Sigma <- l Sigma + (1 - l) K, mu <- sqrt(l) mu"),
    "K2": Equation("KRLS-T", "prediction", "q = Q k(x), f(x) = q . mu"),
    "K3": Equation("KRLS-T", "variance of the prediction", "s^2 = noise + g + q' Sigma q, g = kappa(x, x) - q . k(x)"),
    "K4": Equation("KRLS-T", "inverse with a row more", "Q <- [Q 0; 0 0] + p p' / g, p = (q, -1)"),
    "K5": Equation("KRLS-T", "mean with a row more", "mu <- (mu, f) + p (y - f) / s^2, p = (Sigma q, s^2 - noise)"),
    "K6": Equation(
        "KRLS-T",
        "covariance with a row more",
        "Sigma <- [Sigma, Sigma q; (Sigma q)', s^2 - noise] - p p' / s^2",
    ),
    "K7": Equation(
        "KRLS-T",
        "the row that is removed",
        "the new one where g is small, else argmin of |(Q mu)_r / Q_rr|",
    ),
    "K8": Equation("KRLS-T", "inverse with a row less", "Q <- Q - Q_r Q_r' / Q_rr"),
    "B1": Equation("DOEBE", "coefficients move", "P <- P + walk I"),
    "B2": Equation("DOEBE", "prediction of an expert", "m = theta . z, s^2 = noise + z' P z"),
    "B3": Equation("DOEBE", "mixture", "p(y) = sum_e w_e p_e(y), of numbers sum_e w_e Normal(y; m_e, s_e^2)"),
    "B4": Equation("DOEBE", "an expert learns", "theta <- theta + P z (y - m) / s^2, P <- P - P z z' P / s^2"),
    "B5": Equation("DOEBE", "weights by Bayesian model averaging", "w_e <- w_e p_e(y) / p(y)"),
    "B6": Equation(
        "DOEBE",
        "weights by online Bayesian stacking",
        "w_e <- w_e (1 - r_t + r_t p_e(y) / p(y)) r + (1 - r) / E, r = r_(t + 1) / r_t",
    ),
    "B7": Equation("DOEBE", "probability of a label", "p_e(y) = sigma(y m / sqrt(1 + pi z' P z / 8))"),
    "B8": Equation(
        "DOEBE",
        "an expert learns a label",
        "theta <- theta + P z y sigma(-y f), f = m + z' P z y sigma(-y f), "
        "P <- P - P z z' P / (1 / h + z' P z), h = sigma(f) sigma(-f)",
    ),
}


class Place(NamedTuple):
    """A line of source that computes an equation."""

    path: str  # within the project
    line: int
    text: str


def tagged(patterns: Iterable[str]) -> dict[str, list[Place]]:
    """Every number at the end of a line of these files, with its places."""
    found: dict[str, list[Place]] = {}
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if tag := re.search(r"^(.*\S)\s+(?:#|//) ((?:\((?:[A-Z]?\d+[ab]?|z)\) ?)+)$", text):
                for number in re.findall(r"[A-Z]?\d+[ab]?|z", tag[2]):
                    place = Place(path.relative_to(ROOT).as_posix(), line, tag[1].strip())
                    found.setdefault(number, []).append(place)
    return found


def entries(equations: dict[str, Equation], found: dict[str, dict[str, list[Place]]], note: str) -> list[str]:
    """One section for each equation, with its lines in every language."""
    lines = []
    for number, (label, what, formula) in equations.items():
        lines += [
            "",
            f"## ({number}) {what}",
            "",
            f"`{formula}` {note.format(label, label.lower().replace(' ', '-'))}",
            "",
        ]
        for language, places in found.items():
            for path, line, text in places.get(number, []):
                lines.append(f"- {language} [{path}:{line}](../{path}#L{line}) `{text}`")
    return lines


def page() -> str:
    """The text of docs/equations.md."""
    found = {"Python": tagged(PYTHON), "C++": tagged(CPP)}
    lines = [
        "# The equations in the code",
        "",
        "Written by `make equations` from the numbers at the ends of the lines; a test keeps it true. Numbers are the",
        "printed ones of the paper (arXiv 2102.04690), with the label in its LaTeX source beside them; (z) has no",
        "number there. Numbers that begin with G are those of [GraphMKL](graph_mkl.md), and those with other letters",
        "are those of [related algorithms](related.md).",
        *entries(EQUATIONS, found, "({})"),
        *entries(GRAPH_MKL, found, "([{0}](graph_mkl.md#{1}))"),
        *entries(RELATED, found, "([{0}](related.md#{1}))"),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "equations.md").write_text(page(), encoding="utf-8")
