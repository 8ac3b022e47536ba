"""Why a publication did not arrive: for each subscription that might have expected it, the rule that kept it back."""

from commands.explain.why.explainer import Explainer
from commands.explain.why.verdict import Asked, Reason, Verdict

__all__ = ["Asked", "Explainer", "Reason", "Verdict"]
