/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid.c - hosts of one kind by what they have
 *
 * A cell holds the hosts with the same number of devices and CPUs, as bits by host number, and a bit
 * for each of these words that is not empty: most cells have few hosts of many. A walk
 * begins at what is wanted and goes on to roomier cells, so the first host it gives leaves least
 * behind; or it begins at the roomiest.
 */
#include <stdlib.h>

#include "base/must.h"
#include "sched/hosts/hosts.h"

void grid_init(struct grid *grid, uint32_t rows, uint32_t cols, size_t hosts)
{
    grid->rows = rows;
    grid->cols = cols;
    grid->words = (uint32_t)((hosts + 63) / 64);
    grid->full_words = (grid->words + 63) / 64;
    grid->row_words = (cols + 63) / 64;
    grid->cells = NEW_ARRAY(struct cell, (size_t)rows * cols);
    grid->in_col = NEW_ARRAY(uint32_t, cols);
    grid->cols_filled = NEW_ARRAY(uint64_t, grid->row_words);
    grid->filled = NEW_ARRAY(uint64_t, (size_t)rows * grid->row_words);
}

void grid_done(struct grid *grid)
{
    for (size_t i = 0; grid->cells && i < (size_t)grid->rows * grid->cols; i++)
        free(grid->cells[i].hosts);
    free(grid->cells);
    free(grid->in_col);
    free(grid->cols_filled);
    free(grid->filled);
    *grid = (struct grid){ 0 };
}

static uint64_t *filled_word(struct grid *grid, uint32_t cell, uint64_t *bit)
{
    uint32_t row = cell / grid->cols, col = cell % grid->cols;

    *bit = UINT64_C(1) << (col % 64);
    return &grid->filled[row * grid->row_words + col / 64];
}

/* Which words of the cell are not empty; behind them. */
static uint64_t *full_of(const struct grid *grid, const struct cell *cell)
{
    return cell->hosts + grid->words;
}

/* The first word at or after `word` that has a host, or words. */
static uint32_t word_from(const struct grid *grid, const struct cell *cell, uint32_t word)
{
    const uint64_t *full = full_of(grid, cell);
    uint32_t at = word / 64;

    if (word >= grid->words)
        return grid->words;
    uint64_t bits = full[at] & (~UINT64_C(0) << (word % 64));
    while (!bits && ++at < grid->full_words)
        bits = full[at];
    return bits ? at * 64 + (uint32_t)__builtin_ctzll(bits) : grid->words;
}

static void col_add(struct grid *grid, uint32_t col, int by)
{
    uint64_t bit = UINT64_C(1) << (col % 64);

    grid->in_col[col] += (uint32_t)by;
    if (grid->in_col[col])
        grid->cols_filled[col / 64] |= bit;
    else
        grid->cols_filled[col / 64] &= ~bit;
}

void grid_move(struct grid *grid, uint32_t host, uint32_t *at, uint32_t to)
{
    uint64_t bit;

    MUST(to == NO_CELL || to < grid->rows * grid->cols);
    if (*at == to)
        return;
    if (*at != NO_CELL) {
        struct cell *cell = &grid->cells[*at];
        col_add(grid, *at % grid->cols, -1);
        uint32_t at_word = host / 64;
        cell->hosts[at_word] &= ~(UINT64_C(1) << (host % 64));
        if (!cell->hosts[at_word])
            full_of(grid, cell)[at_word / 64] &= ~(UINT64_C(1) << (at_word % 64));
        if (--cell->count == 0) {
            uint64_t *word = filled_word(grid, *at, &bit);
            *word &= ~bit;
        }
    }
    if (to != NO_CELL) {
        struct cell *cell = &grid->cells[to];
        col_add(grid, to % grid->cols, 1);
        if (!cell->hosts)
            cell->hosts = NEW_ARRAY(uint64_t, grid->words + grid->full_words);
        uint32_t at_word = host / 64;
        cell->hosts[at_word] |= UINT64_C(1) << (host % 64);
        full_of(grid, cell)[at_word / 64] |= UINT64_C(1) << (at_word % 64);
        if (cell->count++ == 0) {
            uint64_t *word = filled_word(grid, to, &bit);
            *word |= bit;
        }
    }
    *at = to;
}

void grid_walk_begin(struct grid_walk *walk, const struct grid *grid, const uint64_t *among,
                     uint32_t row, uint32_t col, bool down)
{
    *walk = (struct grid_walk){ .grid = grid, .among = among, .down = down };
    walk->first_row = row;
    walk->first_col = col;
    walk->row = down ? grid->rows - 1 : row;
    walk->col = down ? grid->cols : col;
}

/* The next filled column of the row at or after `col`, or cols. */
static uint32_t column_up(const struct grid *grid, uint32_t row, uint32_t col)
{
    const uint64_t *filled = &grid->filled[row * grid->row_words];

    for (uint32_t word = col / 64; word < grid->row_words; word++) {
        uint64_t bits = filled[word];
        if (word == col / 64)
            bits &= ~UINT64_C(0) << (col % 64);
        if (bits)
            return word * 64 + (uint32_t)__builtin_ctzll(bits);
    }
    return grid->cols;
}

/* The last filled column before `col`, or UINT32_MAX. */
static uint32_t column_down(const struct grid *grid, uint32_t row, uint32_t col)
{
    const uint64_t *filled = &grid->filled[row * grid->row_words];

    for (uint32_t word = (col + 63) / 64; word-- > 0;) {
        uint64_t bits = filled[word];
        if (word == col / 64)
            bits &= (UINT64_C(1) << (col % 64)) - 1;
        if (bits)
            return word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
    }
    return UINT32_MAX;
}

/* Those of every row. */
static uint32_t count_cols(const struct grid *grid, uint32_t col, uint32_t enough)
{
    uint64_t skip = (UINT64_C(1) << (col % 64)) - 1;
    uint32_t count = 0;

    for (uint32_t word = col / 64; word < grid->row_words; word++, skip = 0) {
        for (uint64_t bits = grid->cols_filled[word] & ~skip; bits && count < enough;
             bits &= bits - 1)
            count += grid->in_col[word * 64 + (uint32_t)__builtin_ctzll(bits)];
    }
    return count;
}

uint32_t grid_count(const struct grid *grid, uint32_t row, uint32_t col, uint32_t enough)
{
    uint32_t count = row ? 0 : count_cols(grid, col, enough);

    for (; row > 0 && row < grid->rows && count < enough; row++) {
        const struct cell *cells = &grid->cells[(size_t)row * grid->cols];
        for (uint32_t at = column_up(grid, row, col); at < grid->cols;
             at = column_up(grid, row, at + 1))
            count += cells[at].count;
    }
    return MIN(count, enough);
}

static bool next_cell_up(struct grid_walk *walk)
{
    uint32_t from = walk->inside ? walk->col + 1 : walk->col;

    for (; walk->row < walk->grid->rows; walk->row++, from = walk->first_col) {
        if (from >= walk->grid->cols)
            continue;
        walk->col = column_up(walk->grid, walk->row, from);
        if (walk->col < walk->grid->cols)
            return true;
    }
    return false;
}

static bool next_cell_down(struct grid_walk *walk)
{
    for (;;) {
        uint32_t col = column_down(walk->grid, walk->row, walk->col);
        if (col != UINT32_MAX && col >= walk->first_col) {
            walk->col = col;
            return true;
        }
        if (walk->row == walk->first_row)
            return false;
        walk->row--;
        walk->col = walk->grid->cols;
    }
}

uint32_t grid_walk_next(struct grid_walk *walk)
{
    const struct grid *grid = walk->grid;

    if (walk->first_row >= grid->rows || walk->first_col >= grid->cols)
        return UINT32_MAX;
    for (;;) {
        if (walk->bits) {
            uint32_t bit = (uint32_t)__builtin_ctzll(walk->bits);
            walk->bits &= walk->bits - 1;
            return walk->word * 64 + bit;
        }
        if (walk->inside && walk->word + 1 < grid->words) {
            walk->word++;
        } else {
            if (!(walk->down ? next_cell_down(walk) : next_cell_up(walk)))
                return UINT32_MAX;
            walk->inside = true;
            walk->word = 0;
        }
        const struct cell *cell = &grid->cells[(size_t)walk->row * grid->cols + walk->col];
        do {
            walk->word = word_from(grid, cell, walk->word);
            if (walk->word < grid->words)
                walk->bits = cell->hosts[walk->word] & walk->among[walk->word];
        } while (!walk->bits && walk->word++ < grid->words);
    }
}
