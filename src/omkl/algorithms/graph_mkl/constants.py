"""GraphMKL's constants, each with its meaning; the build writes them into a C++ header, so they stand here alone.

What a user may choose is in `settings.py`. This module imports nothing.
"""

# Scaling of inputs and targets
LARGEST_VALUE = 1e90  # larger inputs and targets are taken as this much, so that squares and sums stay finite
CLIP = 5.0  # standard deviations at which inputs are clipped
CLIP_LINEAR = 30.0  # the same for the linear expert
MIN_RELATIVE_DEVIATION = 1e-12  # of the mean; a smaller standard deviation is rounding, and the column constant
MIN_DEVIATION = 1e-150  # the same, absolute
FIRST_ROWS = 256  # rows kept for refits
REFIT_AGES = (1, 2, 3, 4, 5, 6, 7, 8, 16, 64, FIRST_ROWS)  # rows after which scaling and experts are fitted again
BLOCK_ROWS = 128  # least rows after the last refit by which the scaling is judged
BLOCK_DIVISOR = 4  # and least share of all rows: one over it
BLOCK_VALUES = 64  # an input with fewer values in these rows is not judged
BLOCK_CLIP = 40.0  # standard deviations at which values are clipped for it
MISFIT = 20.0  # a deviation too large or too small by this factor, or a mean off by so many deviations, does not fit
FIRST_CHANGE_MISFIT = 2.0  # the same for a deviation too large, of an input scaled by its first change alone

# Experts
MAX_FULL_INPUTS = 1024  # with more inputs the covariance of the linear expert is diagonal
DIAGONAL_RIDGE = 0.3  # least ridge of the linear expert then; a small one needs the correlations between inputs
MAX_SPARSE = 5120  # most inputs that the linear expert alone has
SPARSE_RIDGE = 1.0  # of their coefficients
SQUARE_SCALE = 1.5  # squared standardised inputs are divided by it; about their standard deviation
WINDOW = 1024  # rows that the memory experts average
RANGE_MARGIN = 0.5  # the linear expert may leave the targets in the window by so many times their range
START_NOISE = 1.0  # noise of an expert before the first row, in squared units of the target
NOISE_ROUNDS = (1.0, 4.0)  # the gain of the noise is this over itself plus the rounds, for labels the second
LABEL_LEVERAGE = 8.0  # largest leverage in the variance that a label's probability is computed with
MIN_VARIANCE = 1e-12  # added to the noise, in squared units of the target
MIN_LEVERAGE_DIVISOR = 1e-12  # a leverage z' P z below it is taken as this much where it divides
MIN_CURVATURE = 0.05  # least p (1 - p) in a Newton step of the logistic experts
MIN_TEMPERATURE = 1e-2  # of an expert's label probabilities
MAX_TEMPERATURE = 1e2
MAX_SLOPE = 2.0  # at which the slope of the log-likelihood in the log-temperature is clipped

# Mixture and stacking
STUDENT_DEGREES = 4  # degrees of freedom of the Student t that judges predictions of numbers
MIN_PROBABILITY = 1e-12  # of a label, where its logarithm is taken
STACK_RIDGE = 100.0  # of the residual stacking
STACK_CLIP = 3.0  # standard deviations of the mixture at which inputs, target and output of the stacking are clipped

LABEL_STACK_RIDGE = 100.0  # of the stacking of labels
LABEL_STACK_CLIP = 6.0  # at which differences of log-probabilities are clipped

# Large experts, and the archive of rows that they are fitted to
ARCHIVE_START = 256  # rows; the archive is doubled when it is full
MAX_ARCHIVE = 65536  # most rows of an archive
MAX_ARCHIVE_VALUES = 2**22  # and most of their values
MAX_TREES = 1000
LARGE_LOSS_ROUNDS = 500  # rounds that the means of losses are over, about
WIDE_FREE = 256  # frequencies that the wide least squares always get, if there are rows enough; more of them ...
WIDE_GAIN = 0.98  # ... if the smallest ridge has at most this share of the losses of the others ...
WIDE_USEFUL = 2.0  # ... and of that of the prediction

# Boosted trees
TREE_DEPTH = 6  # levels of splits
TREE_BINS = 128  # of the values of an input, one for those that are missing
TREE_RATE = 0.12  # share of a leaf's mean residual that is its value
TREE_RIDGE = 1.0  # rows of residual 0 that a leaf begins with
TREE_LABEL_RIDGE = 0.05  # the same for labels, in curvature of one row
TREE_START = 64  # rows before the first fit
TREE_GROWTH = (0.25, 0.12)  # share of the rows at the last fit that come before the next one, for labels the second ...
TREE_REFRESH = 0.5  # ... but no more than this share of the archive
TREE_SPREAD = 10  # a fit is spread over one row in so many of those that it is made on
TREE_LEAST_ROWS = (2, 10)  # least of a leaf, of which a set of few rows takes the first
TREE_LEAST_SHARE = 10  # one row in so many, between these two
TREE_INPUTS = (32, 64)  # half of the inputs are searched for the splits of a tree, but at least and at most so many
TREE_SKETCH = 3  # projections of the residuals of labels that splits are searched with, at most
TREE_QUANTA = 4095  # largest residual, as a whole number
TREE_LARGEST_SUM = 2**26  # of these numbers: squares of sums are exact
TREE_WEIGHT = 16  # the mean weight of a row, as a whole number
TREE_ROUNDING = 0.4999999  # added before rounding down: ties are no matter of the last digit
TREE_SIGN_STEP = 7919  # between the signs of one tree's projections
LARGEST_DOUBLE = 1.7976931348623157e308  # as a threshold: no value is above, every value but a missing one is not below

# Wide least squares
MAX_WIDE = 1024  # most frequencies
WIDE_LENGTH_SCALE = 0.9  # of the Gaussian kernel
WIDE_RIDGES = (0.003, 0.3)  # for weights of mean 1
WIDE_LEAST = 64  # frequencies at first
WIDE_GROWTH = 4  # rows for each feature, a sine or a cosine, from which there may be twice as many
WIDE_REFIT = 1.15  # growth of the rows after which they are solved again
WIDE_BLOCK = 64  # rows and features that are worked on at a time
WIDE_PASS = 8  # rows of a block whose features are computed at a time
WIDE_OUTPUTS = 32  # outputs that are solved at a time
WIDE_FEATURE_WORK = 32  # multiplications that a sine and a cosine count for
WIDE_WORK = 2**23  # multiplications after which the work on a row ends

# Selection
RANK_EVERY = 20  # rounds
CHALLENGER_WARM_UP_DIVISOR = 2  # a challenger's warm-up is the incumbent's divided by it
MIN_ROW_SHARE = 1 / 16  # of the rows that count towards the warm-up, however much their weights differ

# Weights and repeated rows
MIN_WEIGHT = 1e-6  # of a row, where it is compared with others
MAX_COPIED_WEIGHT = 1e30  # that copies may add up to
WEIGHT_ROUNDS = 1000.0  # rows that the means over weights are over, about
NEWTON_STEPS = 64.0  # of a logistic expert at one row, at most
KEY_STEP = 0x9E3779B97F4A7C15  # between the places of a row, in its key (SplitMix64)
KEY_SHIFTS = (30, 27, 31)
KEY_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
NEAR_ROUNDS = 8  # a row that came so few rounds ago, and not in the last one, has come again by itself
REPEAT_EVIDENCE = 4.0  # log-likelihood ratio from which rows that have come before are taken as shown again
REPEAT_MEMORY = 0.98  # share of it kept in every round
MAX_REPEAT_EVIDENCE = 8.0  # at which it is capped, so that a few new rows end it

# Change detection
FAST_ROUNDS = 50  # rounds that the fast mean of the error is over, about
SLOW_ROUNDS = 500  # the same for the slow mean
TREND_AFTER = 32  # rounds an incumbent learns before its errors count
CAP_AFTER = 32  # rounds of the means before errors are capped
ERROR_CAP = 20.0  # times the slow mean, or MIN_VARIANCE if that is more: more than this an error does not count
ALARM_AFTER = 200  # rounds of the means before an alarm may be raised
ALARM_RATIO = 2.0  # fast over slow mean that raises it
SILENT_ROUNDS = 16  # rounds before a challenger's predictions count
TRIAL_ROUNDS = 500  # rounds of a challenger's trial
TRIAL_MEMORY = 0.98  # share of the weights kept with every round of a trial

# Intervals
LEVELS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # coverages whose half widths are tracked
START_HALF_WIDTHS = (0.13, 0.39, 0.67, 0.84, 1.04, 1.28, 1.64, 1.96, 2.58)  # those of a normal distribution
HALF_WIDTH_RANGE = 4.0  # a half width is at most so many times its start, and at least the start divided by it
GAIN_ROWS = 2.0  # the gain of the scale and of the half widths is this over the rows since the last change; ...
MIN_HALF_WIDTH_GAIN = 0.002  # ... of the half widths at least this
MAX_HALF_WIDTH_GAIN = 0.05  # ... and at most this
SCALE_OF_MEAN = 1.2533  # standard deviation over mean absolute error, of a normal distribution
MIN_SCALE = 1e-150  # of the errors
SCALE_ROWS = 2000  # rows since the last change are counted up to this
RESTART_ROWS = 16  # and after a change from this
SCALE_RATIO = 1.4  # of a new scale to the old one, that evidence is gathered for
CHANGE_ODDS = (25.0, 200.0)  # likelihood ratios, less 1, at which a larger and a smaller scale have half the weight
CHANGE_PRIOR_ROWS = 4.0  # rows of the old scale that the mean for a new one begins with
RESTART_ODDS = 1.5  # times the rows since the last change: likelihood ratio from which the old scale is forgotten
ONE_SIGMA = 0.6827  # coverage of one standard deviation to either side
