"""gpmi"""
