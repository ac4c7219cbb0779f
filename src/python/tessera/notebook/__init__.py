"""Jupyter notebooks whose cells run on all ranks.

    tessera notebook -n 8               starts Jupyter with a kernel of eight ranks
    tessera notebook -n 8 --install     only installs the kernel, for a Jupyter that runs elsewhere

Rank 0 is an ipykernel. It sends each cell to the other ranks (channel.py) before it runs the cell itself; between cells no rank waits inside of
tessera. Magics: %explain f(x), %bytes statement, %memory, %shard x, %ranks, %%ranks, %patience seconds.
"""
