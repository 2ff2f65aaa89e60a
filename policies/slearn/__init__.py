"""SLearn: job sizes learnt from pilot tasks, or from history (NSDI 2022)."""
