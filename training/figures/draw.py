"""Draws the figures of a run of any program: draw.py RUN_FOLDER FOLDER_FOR_FIGURES."""
import importlib

from style import load, run_folder

# By program the functions that draw, each of (run, flags, metrics): module.function.
FIGURES = {
    "compare_methods": ["compare_methods.comparison"],
    "convert_tosses": ["convert_tosses.checks"],
    "evaluate_tosses": ["tosses.errors", "tosses.errors_in_time"],
    "fit_linear_program": ["learning.fitted_rows", "learning.rollout"],
    "identify_mpec": ["identification.fit", "identification.program"],
    "identify_shooting": ["identification.fit"],
    "identify_tripod": ["identification.fit", "identification.study"],
    "judge_gradients": ["judge_gradients.agreement", "judge_gradients.ends"],
    "reproduce_table": ["reproduce_table.table", "reproduce_table.estimators"],
    "simulate": ["simulate.simulate"],
    "study_noise": ["study_noise.sticking", "study_noise.errors", "study_noise.single_entries"],
    "track_moving_horizon": ["identification.horizon"],
    "track_particle_filter": ["identification.filtered"],
    "train_bilevel": ["learning.rollout", "learning.friction"],
    "train_compliant": ["learning.compliant"],
    "train_direct": ["train_direct.study", "learning.rollout", "learning.direct"],
    "train_directions": ["train_directions.directions"],
    "train_in_the_loop": ["learning.rollout", "learning.friction"],
    "train_markov_chain": ["train_markov_chain.training", "train_markov_chain.branches"],
    "train_mpec": ["learning.rollout"],
    "train_network": ["train_network.rollout", "train_network.search"],
    "train_penalty": ["learning.rollout", "learning.penalty", "learning.rows"],
    "train_slack": ["learning.rollout", "learning.direct"],
    "train_structured": ["learning.rollout", "learning.penalty", "learning.rows"],
    "train_tosses": ["tosses.toss", "tosses.errors", "tosses.errors_in_time", "tosses.training", "tosses.parameters"],
}

run = run_folder()
flags, metrics = load(run)
for name in FIGURES[flags["program"]]:
    module, function = name.split(".")
    getattr(importlib.import_module(module), function)(run, flags, metrics)
