<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

/** The table of the outbox. */
return new class () extends Migration {
    public function up(): void
    {
        Schema::create('dq_outbox', static function (Blueprint $table): void {
            $table->bigIncrements('seq');
            $table->string('message_id', 1024);
            $table->string('queue', 1024);
            $table->char('line', 32);
            $table->longText('message');
            $table->index(['line', 'seq'], 'dq_outbox_line');
        });
    }

    public function down(): void
    {
        Schema::dropIfExists('dq_outbox');
    }
};
