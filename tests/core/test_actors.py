"""What an event keeps of a refusal."""

from core.actors import MOST_STEP, denial
from core.decision import Code, deny


class TestADenial:
    def test_keeps_the_next_step(self):
        kept = denial(deny(Code.NOT_FOUND, "there is none", "ask", rule="r"), mode="coding")
        assert kept["details"] == {"rule": "r", "next_action": "ask", "mode": "coding"}

    def test_keeps_the_beginning_of_one_that_names_a_whole_company(self):
        everybody = ", ".join(f"worker_{number}" for number in range(1000))
        kept = denial(deny(Code.LEVEL_DENIED, "not to this one", f"issue it to {everybody}"))
        step = kept["details"]["next_action"]
        assert len(step) == MOST_STEP
        assert step.startswith("issue it to worker_0, worker_1, ")
