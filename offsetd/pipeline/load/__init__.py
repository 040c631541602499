"""The offline load: topics become a table, each record once, wherever a run is cut off.

A range of offsets is in the table exactly when its load is published, and each run begins where the newest load ended.
offsetd is told last, and is put right from the table at the next start.
"""
