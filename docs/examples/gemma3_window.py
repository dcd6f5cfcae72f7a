"""The same model with a fault that short texts do not show: the window has one position more."""

from gemma3 import Gemma3


def build(config, tensors):
    return WideWindow(config, tensors)


class WideWindow(Gemma3):
    def visible(self, kind, distance):
        if kind == "sliding_attention":
            return (distance >= 0) & (distance <= self.config["sliding_window"])
        return distance >= 0
