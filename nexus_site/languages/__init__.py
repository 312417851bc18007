"""The languages of people: what is to be translated, the catalogue, its compiled form."""
