"""The keys of the classroom's lines in the journal, beside those of the journal's format."""

LESSON = "lesson"  # the lesson's name: lines with the same one say one thing together
LIVE = "live"  # whether it is learned at once; otherwise only by night
HELD_OUT = "held_out"  # whether its conversation judges, and is never taught
SESSION = "session"  # the run of `nightschool teach`
POLICIES = "policies"  # of a pick: for each answer who wrote its samples, `day` or `champion`
FROM_CHAR = "from_char"  # of feedback: from which character on the answer is wrong
IMPLICIT = "implicit"  # of feedback: what the owner did not say, `went_on` or `left`
UNFINISHED = "unfinished"  # the answers (their texts) that were stopped or cut off: they end without an end token
