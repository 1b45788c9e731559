// Notes that a table, which training reads as plain text, has columns.
#ifndef ABLATE_SERVER_SUBMIT_TABLE_NOTE_H_
#define ABLATE_SERVER_SUBMIT_TABLE_NOTE_H_

#include <string>

#include "storage/store.h"

namespace ablate::submit {

// Returns a note with the columns of a text whose file name ends in .csv or .tsv, and a command
// that makes a text of one; "" for other data sets, and if the text can't be read. Blocks on the
// store.
std::string TableNote(storage::Store* store, const storage::DatasetRecord& dataset);

}  // namespace ablate::submit

#endif  // ABLATE_SERVER_SUBMIT_TABLE_NOTE_H_
