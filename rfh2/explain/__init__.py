"""What a person or a program reads of a message: the JSON form of ``decode``, problems with codes, meanings."""
