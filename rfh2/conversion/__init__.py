"""Data conversion: a message in the character set and encoding that a program asks for, as MQGET with MQGMO_CONVERT.

text       characters from one character set to another
pcf        the integers and strings of PCF
message    the headers of a message and the data behind them
"""
