"""What pictures show, before they are drawn: a module for each picture decides on trials, ranges and words.

`html.svg` draws a picture in pages, and `figures.drawing` with Matplotlib.
"""
