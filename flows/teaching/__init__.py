"""`nightschool teach`: the classroom, in which the owner teaches the model by day."""
