"""Block coordinate descent on pairs of rows or columns: the three methods of the paper."""
