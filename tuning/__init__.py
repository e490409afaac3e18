"""Searches for hyper-parameters with KerasTuner: `python -m tuning --help`.

spaces       what is searched, as tables
settings     what a search is, and its folder
candidates   from a point of a space to configs, networks and their size; the HyperModels
records      what is kept of every trial
oracles      KerasTuner's oracles, with budgets and state files that survive
recovery     state files that were cut short
tuner        runs trials as run folders of `dsa_keras.training`
workers      chief and workers on many machines
importance, report, pictures, board   what came out

The package uses `dsa_keras`; `dsa_keras` never uses it.
"""
