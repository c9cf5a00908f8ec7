"""The commented study file that `gpmi init` writes. It runs as it is."""

EXAMPLE = r"""# A study: what to optimise, by which program, and when to stop.
#
#     gpmi run study.toml
#
# Everything is kept in study.db: the same command goes on after a crash, and several at the same time share the work.
#
# Every line that begins with "# " and holds a setting can be switched on by removing the "# ".

goal = "min"                # "min" or "max" of the value that the program gives
budget = 25                 # evaluations in all, failed ones included
seed = 0                    # the same seed and the same values give the same suggestions
# aim = "earn"              # every evaluation counts; by default it is "find": the best point at the end
# workers = 2               # programs that run at the same time
# database = "other.db"     # where it is kept, from the folder of this file; or postgresql://user@host/name
# name = "other"            # of the study there; that of this file by default
# timeout = 600             # seconds of one evaluation; then the program and all that it started are ended
# retries = 1               # how often a program that failed is run again at the same point
# constraints = ["x + rate <= 2.5"]               # about parameters, known before the program runs
# forbidden = [{ method = "fast", degree = 3 }]   # values that may not occur together

# What may be varied. Each parameter has one of: real, int, choice, ordered.
[parameters]
x = { real = [0.0, 2.0] }
rate = { real = [1e-4, 1.0], log = true }         # its order of magnitude matters
degree = { int = [1, 7], step = 2 }               # 1, 3, 5, 7
method = { choice = ["fast", "exact"] }           # one of several, in no order
size = { ordered = [16, 32, 64] }                 # one of several, neighbours are alike
depth = { int = [1, 4], when = { method = "exact" } }  # only with method = "exact"

# The program. Each text in `run` becomes one argument; {x} is replaced by the value of x, {python} by the Python that
# runs gpmi. A list inside is left out as a whole where one of its parameters is inactive. The program also finds the
# parameters in its environment (GPMI_X, GPMI_RATE, ...) and as JSON in the file named by GPMI_PARAMS_FILE.
[command]
run = [
    "{python}", "-c", '''
import math, sys
given = dict(text.lstrip("-").split("=") for text in sys.argv[1:])
x, rate, degree = float(given["x"]), float(given["rate"]), int(given["degree"])
depth = int(given.get("depth", 0))
loss = (x - 0.7) ** 2 + (math.log10(rate) + 2.0) ** 2 / 10 + abs(degree - 5) / 10
loss += 0.1 if given["method"] == "fast" else (depth - 3) ** 2 / 20
loss += abs(math.log2(int(given["size"])) - 5) / 20
print("training ...")
print(loss)
''',
    "--x={x}", "--rate={rate}", "--degree={degree}", "--method={method}", "--size={size}", ["--depth={depth}"],
]
# folder = ".."             # where it runs; from the folder of this file
# environment = { OMP_NUM_THREADS = "1" }
# shell = true              # then `run` is one text for /bin/sh, with values as "$GPMI_X" only

# Where its value is found.
[value]
from = "last line"          # a number, or a JSON object: {"y": 0.5, "noise_var": 0.01}
# from = "match"            # the last line of the output with this pattern, its first group
# pattern = 'loss: (\S+)'
# from = "json"             # the file that GPMI_RESULT_FILE or {result_file} names, a JSON object
# y = "loss"                # the name of the value there, "y" by default
# noise_var = "variance"    # the name of the variance of its error, if there is one
# constraints = ["memory"]  # names of measured constraints: a point is feasible where all are <= 0

# When to stop before the budget is spent: at the first of these.
[stop]
target = 0.001              # a value at least as good was observed
# seconds = 3600
# stagnation = 20           # so many values brought no new best one
# regret_below = 0.01       # the recommended point is probably so close to the best, in units of the value
# regret_below_noise = true
# improvement_below = 0.001 # what one more evaluation may be expected to bring
"""
