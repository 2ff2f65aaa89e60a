"""Wing: jobs by what they, and all that depends on them, are worth (Chung et al., OSDI 2020).

`knowledge` is what is known of jobs; `efficiency` has the static policies, and those whose values
fall while jobs wait.
"""
