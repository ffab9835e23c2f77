"""`nightschool teach`: the classroom of the day."""
