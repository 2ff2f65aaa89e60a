"""What is looked for: the capacity that meets a target, the parameters that do best.

Neither is a grid: which cells are run next follows from what came of those before. They are run
round by round, side by side, cached like any others, so that the same command again goes on.
"""
