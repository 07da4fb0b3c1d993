"""errors.png: which share of the pieces of tosses have at most some error, in each protocol."""
from learning import load
from style import BLUE, ORANGE, TEAL, np, plt, read_columns, run_folder, save

PROTOCOLS = (("whole", "whole tosses", BLUE), ("from_first_contact", "from first contact", ORANGE),
             ("windows_80", "80 steps", TEAL))

run = run_folder()
flags, metrics = load(run)
errors = {name: np.array(column) for name, column in read_columns(run / "errors.csv").items()}
figure, axes = plt.subplots(1, 2, figsize=(7.4, 3), layout="constrained", sharey=True)
for panel, column, factor, unit, label in (
        (axes[0], "position_error_m", 100 / flags["side"], "%", "position error [% of the side]"),
        (axes[1], "rotation_error_rad", 180 / np.pi, "°", "rotation error [degrees]")):
    for number, (name, text, color) in enumerate(PROTOCOLS):
        values = np.sort(factor * errors[column][errors["protocol"] == number])
        if len(values):
            panel.step(values, np.arange(1, len(values) + 1) / len(values), where="post", color=color,
                       label=f"{text}: mean {values.mean():.3g} {unit}")
    panel.set(xlabel=label, xlim=(0, None), ylim=(0, 1))
    panel.legend(fontsize=8, loc="lower right")
axes[0].set_ylabel("share of pieces")
save(figure, "errors")
