"""Searches for hyper-parameters with KerasTuner: `dsa-keras tune --help`.

spaces       what is searched, as tables; rows of encoders stand with the encoders
goal         the figure that a search is after, and what is better
settings     what a search is, and its folder
candidates   from a point of a space to recipes, networks and their size; the HyperModel
records      what is kept of every trial
guarded      budgets and state files that survive, for all oracles
oracles      KerasTuner's oracles with these, and what is used of its private parts
recovery     state files that were cut short
tuner        runs trials as run folders of `dsa_keras.training`
workers      chief and workers on many machines
importance, report, pictures, board   what came out
"""
