"""The words of docs/peers.md."""

from omkl_lab.comparison.boosting import AT_LEAST, EVERY, FIRST_FIT, LAGS, LAST, MORE, MUCH_MORE
from omkl_lab.comparison.outcome import PREFIX, SETTLED

HOW = f"""\
Every row is predicted, then learned, in the order of the file, and the first row is not scored. Nothing is scaled
by what comes later: rows are given as they are in the file, and each learner scales them by the rows so far. Only
the unit of squared errors, the range of the targets, comes from the whole file (generated streams: 1). All rows of
all sets are used, except by learners of about a millisecond a row, which get the first {PREFIX} rows of the sets
(and all rows of the streams that change); other learners' errors on these rows are in tables of their own.

- **GraphMKL**: default parameters unless the name says more; the median of the seeds. All rows are passed in one
  call, which also computes the intervals.
- **LightGBM** is refitted on all rows so far whenever there are {100 * MORE:.0f} % more (from {FIRST_FIT} rows on,
  at least {AT_LEAST} more): default parameters, min_child_samples = min(20, max(2, rows // 10)), one thread. "last
  {LAST}" is fitted to these rows only, and at the latest after {EVERY} new rows; "+ y" has the last {LAGS} targets
  as further inputs (sets in order of time). Seeds shift the first fit by 3 rows each: on some sets the moments of
  fitting matter as much as other choices. **HistGradientBoosting** is refitted at {100 * MUCH_MORE:.0f} % more
  rows, without early stopping. All rows until the next fit are predicted in one call, which favours these learners'
  time.
- **Streaming peers** get inputs standardised by the mean and deviation of the rows so far; linear models, random
  features, VW and filters also get standardised targets, while trees, forests, rules and neighbours get them as
  they are (it made little difference to them). Their parameters are defaults, except for what a name says and for
  the following. "KNN, exact" searches the last 1000 rows. The five RBF of EWA have gamma 0.01 to 100 and 20
  features each; river's other random features are 100 with gamma 1, scikit-learn's 100 with gamma 1 / inputs.
  padasip's filters get a constant 1 as an additional input. VW gets lines of text. "recursive ridge" is recursive
  least squares with a ridge of 1. Peers with randomness have up to three seeds; the median is shown.
- **Distributions**: GraphMKL's is the one that its intervals state, of ten coverages up to 99 %: uniform between
  the ends of two of them, and beyond the widest a power of the distance that agrees with the two widest. A point
  forecast becomes a normal distribution around it whose variance is the mean of its squared errors so far. Scores of
  distributions begin with row {SETTLED}. Log score (in nats), continuous ranked probability score (from quantiles
  where the distribution is not normal) and interval score of 90 % intervals: smaller is better.
- **Labels**: share of wrong labels (a tie counts by its share), log-loss (probabilities at least 1e-15), expected
  calibration error (15 bins of confidence). GraphMKL and the refitted learners get the list of labels in advance
  (labels that a fit has not seen share the probability 1 / (rows + 1)), other learners do not.
- **Core-microseconds**: processor time of all threads of the process, for predicting and learning; standardising
  and converting rows for streaming peers is not counted. The machine is shared: compare ratios.
- **diverges**: the squared errors summed to more than any constant's in the range of the targets, and the run was
  stopped. **fails**: an error was raised. **-**: not measured.
- **To run it**: `pip install -e 'lab[peers]'` installs the peers except CapyMOA, which needs Java 17 and `pip
  install --no-deps capymoa jpype1 deprecated wrapt tqdm`. A run that was interrupted goes on where it was. To
  measure GraphMKL alone again: `python -m omkl_lab.comparison all --docs docs/peers.md`; with LightGBM's time in
  the same run: `--learners GraphMKL "LightGBM, all rows" --fresh`.
"""

TUNED = """\
GraphMKL's settings were chosen on the fifteen real sets, on airfoil, concrete, wine_white, naval, bias, energy, the
four streams that change and the three older sets with labels, so its results there are optimistic. No parameter was
chosen on air_quality, toms_hardware, twitter or istanbul, but they were in view. On [further streams](unseen.md) with
numbers no parameter was chosen. The peers have default parameters; the steps in the names and the settings of EWA were
chosen in favour of the peers on the paper's four sets.
"""
