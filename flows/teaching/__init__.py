"""`nightschool teach`: the classroom, in which the model learns while its owner watches."""
