"""The kernels of a fused row softmax, in Triton.

There are two forms, each with its backward:

    rows   a program takes whole rows in one tile, so every byte is read once and written once
    loop   a program takes one row tile by tile, for rows that do not fit into registers

Both forms accumulate in `ACC`: float32 for inputs of up to 32 bits, float64 for float64.

Three things here are only for speed:

- Widths and row strides are passed as a number of groups of `ALIGN`. Triton only tests whether 16
  divides a number, and 16 does not divide 600. So the kernel would have to load 600 columns one by
  one. But 75 groups of 8 show that the kernel may move four or eight neighbours at once.
- The loop reads a row first forward and then backward. So the second pass starts with values that
  are still in the caches.
- Inside the loop, each thread has a separate maximum and a separate sum over `VEC` neighbouring
  columns. So no thread waits for another thread before the end.
"""

import triton
import triton.language as tl

# Triton compiles one binary for all sizes. `ALIGN` is all that this binary knows about a size.
SIZES = ["rows", "column_groups", "x_row_groups", "g_row_groups", "y_row_groups"]


@triton.jit(do_not_specialize=SIZES)
def softmax_rows(
    x_ptr,
    y_ptr,
    rows,
    column_groups,
    x_row_groups,
    x_column_stride,
    ALIGN: tl.constexpr,
    ACC: tl.constexpr,
    INDEX: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """y = softmax(x) for `ROWS` rows of at most `BLOCK` columns; y is contiguous."""
    columns = column_groups.to(INDEX) * ALIGN
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK).to(INDEX)[None, :]
    inside = (row < rows) & (column < columns)

    x_tile = x_ptr + row * x_row_groups * ALIGN + column * x_column_stride
    # Lanes outside a row must not change its maximum or its sum: they are -inf, and exp(-inf) is 0.
    x = tl.load(x_tile, mask=inside, other=-float("inf"), eviction_policy="evict_first").to(ACC)
    exponential = tl.exp(x - tl.max(x, 1)[:, None])
    y = exponential * (1.0 / tl.sum(exponential, 1))[:, None]
    y_tile = y_ptr + row * columns + column
    tl.store(y_tile, y.to(y_ptr.dtype.element_ty), mask=inside, eviction_policy="evict_first")


@triton.jit(do_not_specialize=SIZES)
def softmax_rows_backward(
    g_ptr,
    y_ptr,
    dx_ptr,
    rows,
    column_groups,
    g_row_groups,
    g_column_stride,
    y_row_groups,
    y_column_stride,
    ALIGN: tl.constexpr,
    ACC: tl.constexpr,
    INDEX: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """dx = y * (g - sum(g * y)) for `ROWS` rows of at most `BLOCK` columns; dx is contiguous."""
    columns = column_groups.to(INDEX) * ALIGN
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK).to(INDEX)[None, :]
    inside = (row < rows) & (column < columns)

    g_tile = g_ptr + row * g_row_groups * ALIGN + column * g_column_stride
    y_tile = y_ptr + row * y_row_groups * ALIGN + column * y_column_stride
    g = tl.load(g_tile, mask=inside, other=0.0, eviction_policy="evict_first").to(ACC)
    y = tl.load(y_tile, mask=inside, other=0.0, eviction_policy="evict_first").to(ACC)
    dx = y * (g - tl.sum(g * y, 1)[:, None])
    dx_tile = dx_ptr + row * columns + column
    tl.store(dx_tile, dx.to(dx_ptr.dtype.element_ty), mask=inside, eviction_policy="evict_first")


@triton.jit(do_not_specialize=SIZES)
def softmax_loop(
    x_ptr,
    y_ptr,
    column_groups,
    x_row_groups,
    x_column_stride,
    ALIGN: tl.constexpr,
    ACC: tl.constexpr,
    INDEX: tl.constexpr,
    VEC: tl.constexpr,
    BLOCK: tl.constexpr,
    TILES: tl.constexpr,
):
    """y = softmax(x) for one row in `TILES` tiles of `BLOCK` columns; y is contiguous.

    The first pass is the online softmax of Milakov and Gimelshein (2018): a running maximum, and
    a running sum that is rescaled whenever the maximum grows.
    """
    columns = column_groups.to(INDEX) * ALIGN
    row = tl.program_id(0).to(tl.int64)
    x_row = x_ptr + row * x_row_groups * ALIGN
    y_row = y_ptr + row * columns
    lane = (tl.arange(0, BLOCK // VEC)[:, None] * VEC + tl.arange(0, VEC)[None, :]).to(INDEX)

    top = tl.full((BLOCK // VEC,), -float("inf"), ACC)
    total = tl.full((BLOCK // VEC,), 0.0, ACC)
    for tile in range(TILES):
        column = lane + tile * BLOCK
        x = tl.load(
            x_row + column * x_column_stride,
            mask=column < columns,
            other=-float("inf"),
            eviction_policy="evict_last",
        ).to(ACC)
        raised = tl.maximum(top, tl.max(x, 1))
        # If all numbers so far are -inf, -inf - -inf would be NaN, and every later sum would be
        # NaN, too.
        base = tl.where(raised == -float("inf"), 0.0, raised)
        total = total * tl.exp(top - base) + tl.sum(tl.exp(x - base[:, None]), 1)
        top = raised

    peak = tl.max(top, 0)
    base = tl.where(peak == -float("inf"), 0.0, peak)
    scale = 1.0 / tl.sum(total * tl.exp(top - base), 0)
    for step in range(TILES):
        column = lane + (TILES - 1 - step) * BLOCK
        x = tl.load(
            x_row + column * x_column_stride,
            mask=column < columns,
            other=-float("inf"),
            eviction_policy="evict_first",
        ).to(ACC)
        # Here the true maximum is used, so a row that has only -inf becomes NaN, as in
        # torch.softmax.
        y = tl.exp(x - peak) * scale
        tl.store(
            y_row + column,
            y.to(y_ptr.dtype.element_ty),
            mask=column < columns,
            eviction_policy="evict_first",
        )


@triton.jit(do_not_specialize=SIZES)
def softmax_loop_backward(
    g_ptr,
    y_ptr,
    dx_ptr,
    column_groups,
    g_row_groups,
    g_column_stride,
    y_row_groups,
    y_column_stride,
    ALIGN: tl.constexpr,
    ACC: tl.constexpr,
    INDEX: tl.constexpr,
    VEC: tl.constexpr,
    BLOCK: tl.constexpr,
    TILES: tl.constexpr,
):
    """dx = y * (g - sum(g * y)) for one row in `TILES` tiles of `BLOCK` columns."""
    columns = column_groups.to(INDEX) * ALIGN
    row = tl.program_id(0).to(tl.int64)
    g_row = g_ptr + row * g_row_groups * ALIGN
    y_row = y_ptr + row * y_row_groups * ALIGN
    dx_row = dx_ptr + row * columns
    lane = (tl.arange(0, BLOCK // VEC)[:, None] * VEC + tl.arange(0, VEC)[None, :]).to(INDEX)

    partial = tl.full((BLOCK // VEC,), 0.0, ACC)
    for tile in range(TILES):
        column = lane + tile * BLOCK
        inside = column < columns
        g_tile = g_row + column * g_column_stride
        y_tile = y_row + column * y_column_stride
        g = tl.load(g_tile, mask=inside, other=0.0, eviction_policy="evict_last").to(ACC)
        y = tl.load(y_tile, mask=inside, other=0.0, eviction_policy="evict_last").to(ACC)
        partial += tl.sum(g * y, 1)

    dot = tl.sum(partial, 0)
    for step in range(TILES):
        column = lane + (TILES - 1 - step) * BLOCK
        inside = column < columns
        g_tile = g_row + column * g_column_stride
        y_tile = y_row + column * y_column_stride
        g = tl.load(g_tile, mask=inside, other=0.0, eviction_policy="evict_first").to(ACC)
        y = tl.load(y_tile, mask=inside, other=0.0, eviction_policy="evict_first").to(ACC)
        dx = (y * (g - dot)).to(dx_ptr.dtype.element_ty)
        tl.store(dx_row + column, dx, mask=inside, eviction_policy="evict_first")
