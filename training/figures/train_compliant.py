"""training.png: the loss, the friction and the stiffness of a run that learns compliant ground."""
from learning import load, reference
from style import BLUE, plt, read_columns, run_folder, save

run = run_folder()
flags, metrics = load(run)
history = read_columns(run / "history.csv")
figure, (loss, mu, stiffness) = plt.subplots(1, 3, figsize=(8.6, 2.8), layout="constrained")
loss.semilogy(history["iteration"], history["loss"], color=BLUE)
loss.set(xlabel="iteration", ylabel="loss [dimensionless]")
for axes, name, label in ((mu, "mu", "friction coefficient"), (stiffness, "stiffness", "stiffness [N/m]")):
    axes.plot(history["iteration"], history[name], color=BLUE)
    reference(axes, flags, name)
    axes.set(xlabel="iteration", ylabel=label, ylim=(0, None))
    axes.legend(fontsize=8)
rigid = metrics["lcp_gradient_at_start"]
known = "" if rigid is None else f"; {rigid:.3g} on rigid ground, by the LCP"
figure.suptitle(rf"$\partial$ loss / $\partial\mu$ at the start: {metrics['gradient_at_start']:.3g}{known}", fontsize=9)
save(figure, "training")
