"""A Model Spec held against an implementation that somebody else wrote, in float64.

    spec -> reduced sizes -> drawn weights -> Whole (the spec by its formulas)      \\
                                           -> an Implementation (the official class) > judge -> figures, departures

`report.verify` runs all of it for the official transformers class. `judge.judge` takes any `Implementation`
(`specc.verify.implementation`): that is the door for a user's own model.
"""
