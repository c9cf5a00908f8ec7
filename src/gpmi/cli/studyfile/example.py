"""The commented study file that `gpmi init` writes. It runs as it is."""

from gpmi.run.study_table import FIDELITY, KINDS

EXAMPLE = r"""# A study: what to optimise, with which program, and when to stop.
#
#     gpmi run study.toml
#
# Everything is stored in study.db. The same command continues after a crash. Run it several times in parallel to
# share the work.
#
# To switch on a setting in a line that begins with "# ", remove the "# ".

goal = "min"                # "min" or "max" of the program's value
# bounds = [0, inf]         # what the value can be at all: what is stated about it stays within
budget = 25                 # evaluations in all, including failed ones
seed = 0                    # the same seed and the same values give the same suggestions
# aim = "earn"              # every evaluation counts; the default is "find": only the best point at the end counts
#     cost = 600            # with a fidelity below: what to spend in all, beside the budget or in place of it
# workers = 2               # programs that run at the same time
# database = "other.db"     # relative to the folder of this file; or postgresql://user@host/name
# name = "other"            # of the study in the database; by default the name of this file
# timeout = 600             # seconds for one evaluation; then the program and all that it started are ended
# retries = 1               # how often a program that failed or timed out is run again
# constraints = ["x + rate <= 2.5"]               # on parameters, known before the program runs
# forbidden = [{ method = "fast", degree = 3 }]   # values that must not occur together

# The parameters to vary. Each is one of: <kinds>.
[parameters]
x = { real = [0.0, 2.0] }
rate = { real = [1e-4, 1.0], log = true }         # its order of magnitude matters
degree = { int = [1, 7], step = 2 }               # 1, 3, 5, 7
method = { choice = ["fast", "exact"] }           # one of several, without an order
size = { ordered = [16, 32, 64] }                 # one of several, with similar neighbours
depth = { int = [1, 4], when = { method = "exact" } }  # only with method = "exact"
# mesh = { fidelity = { coarse = 1, fine = 60 } } # how exact it is and what it costs; the value at the last one counts
# epoch = { fidelity = [1, 52] }                  # steps: the program prints lines such as "12 0.93", and may be ended

# Several outputs, each with its own goal, in place of `goal` above. The program then prints a JSON object that has all
# of them, such as {"loss": 0.5, "seconds": 12.3}.
# [goals]
#     loss = { goal = "min", bounds = [0, inf] }  # with what it can be at all; or "min", or "max"
#     seconds = { goal = "min", at_most = 60 }    # with the worst value that you would accept
#     memory = { at_most = 8 }                    # a limit: at_most or at_least
#     width = { match = 42, within = 3 }          # as close to 42 as possible, at most 3 away
#     energy = "watch"                            # only recorded and modelled

# The program. Each string in `run` becomes one argument. {x} is replaced by the value of x, {python} by the Python that
# runs gpmi. A list inside is left out as a whole if one of its parameters is inactive. The program also finds the
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
# folder = ".."             # where it runs, relative to the folder of this file
# environment = { OMP_NUM_THREADS = "1" }
# shell = true              # then `run` is one string for /bin/sh, which gets values as "$GPMI_X" only

# Where to find its value.
[value]
from = "last line"          # a number, or a JSON object: {"y": 0.5, "noise_var": 0.01}
# from = "match"            # the last line of the output with this pattern; its first group is the value
# pattern = 'loss: (\S+)'     # with a fidelity of steps, a group (?P<step>\d+) finds the step
# from = "json"             # the file that GPMI_RESULT_FILE or {result_file} names, a JSON object
# y = "loss"                # the name of the value there, "y" by default
# noise_var = "variance"    # the name of the variance of its error, if it is given
#     outputs = { loss = "final_loss" }           # with [goals]: the name of an output there, if it is another
#     pattern = { loss = 'loss: (\S+)' }          # with [goals]: a pattern for each output
# constraints = ["memory"]  # the names of measured constraints: a point is feasible if all are <= 0

# Earlier studies of related functions, by name: their databases. What they say is used as far as it agrees.
# [earlier]
# "last year" = "last_year.db"

# When to stop before the budget is spent: when the first of these is met.
[stop]
# target = 0.001            # a value at least this good was observed: at most this for "min", at least for "max"
# seconds = 3600
# stagnation = 20           # this many values brought no new best one
# gain_below = 0.01         # ten more evaluations probably improve it by less than this, in units of the value
# regret_below = 0.01       # the recommended point is probably this close to the best, in units of the value
# regret_below_noise = true # it is probably closer than the standard deviation of the noise
# improvement_below = 0.001 # one more evaluation is expected to bring less than this
""".replace("<kinds>", ", ".join((*KINDS, FIDELITY)))
