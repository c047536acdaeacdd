"""Part of the Training page: what each snapshot makes of the sentence at hand."""
