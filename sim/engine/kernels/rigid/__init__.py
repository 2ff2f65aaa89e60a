"""Jobs whose tasks start together, in room that was reserved or planned for them."""
